//! `hintd-agent`: measures round trips between nodes.

fn main() -> std::process::ExitCode {
    hintd_agent::main()
}
