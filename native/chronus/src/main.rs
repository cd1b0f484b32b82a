//! chronus: the only native program of the platform. It creates sandboxes (spawner) and runs inside them (init).

fn main() {
    println!("chronus {}", env!("CARGO_PKG_VERSION"));
}
