//! chronus: the only native program of the platform. It creates sandboxes (spawner) and runs inside them (init).

use std::path::PathBuf;
use std::process::ExitCode;

use chronus::spawner::{self, Settings};

const USAGE: &str = "usage: chronus spawner --socket PATH --run-directory DIR
       chronus --version";

enum Mode {
    Spawner(Settings),
    Version,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parse(&arguments) {
        Some(Mode::Version) => {
            println!("chronus {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Some(Mode::Spawner(settings)) => match spawner::run(&settings) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("chronus spawner: {}", failure.message);
                ExitCode::FAILURE
            }
        },
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[String]) -> Option<Mode> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--version"] => Some(Mode::Version),
        ["spawner", "--socket", socket, "--run-directory", directory]
        | ["spawner", "--run-directory", directory, "--socket", socket] => {
            Some(Mode::Spawner(Settings {
                socket: PathBuf::from(socket),
                run_directory: PathBuf::from(directory),
            }))
        }
        _ => None,
    }
}
