//! The parts of chronus. The binary is `main.rs`; tests drive these modules directly.

pub mod connection;
pub mod context;
pub mod frame;
pub mod init;
pub mod process;
pub mod protocol;
pub mod sandbox;
pub mod session;
pub mod spawner;
