//! Policies by the names that people type.

use super::failure::Failure;
use crate::policy::registry;

/// Whether there is a policy of that name.
///
/// # Errors
/// [`Failure::Input`] with the nearest name, or all there are.
pub fn check(name: &str) -> Result<(), Failure> {
    if registry::find(name).is_some() {
        return Ok(());
    }
    let hint = match registry::nearest(name) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => {
            let known: Vec<&str> = registry::entries().iter().map(|entry| entry.name).collect();
            format!("there are {}", known.join(", "))
        }
    };
    Err(Failure::Input(format!("policy \"{name}\" is unknown; {hint}")))
}
