//! Writes what fuzzing begins with into fuzz/corpus.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (target, _) in hintd_fuzz::TARGETS {
        let folder = fuzz.join("corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        for (at, bytes) in hintd_fuzz::seeds::of(target, &fuzz.join("..")).into_iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{at}")), bytes)?;
        }
    }
    Ok(())
}
