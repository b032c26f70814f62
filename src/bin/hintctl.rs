//! `hintctl`: everything a person or a script types.

/// A simulated day allocates and frees small things all the while (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    hintd_cli::main()
}
