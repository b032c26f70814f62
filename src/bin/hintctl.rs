//! `hintctl`: everything a person or a script types.

fn main() -> std::process::ExitCode {
    hintd::cli::main()
}
