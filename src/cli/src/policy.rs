//! Policies by the names that people type.

use super::failure::Failure;
use hintd_model::solve::nearest;
use hintd_policy::{ParamError, Policy, registry};
use toml::de::DeTable;

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

/// The policy of that name with these parameters: keys and values as `--param` has them. `flag` says how a key stands
/// there.
///
/// # Errors
/// [`Failure::Input`] for a policy that there is not, a parameter that it has not (with the nearest), and a value that
/// can't be meant.
pub fn built(name: &str, params: &[(&str, &str)], flag: impl Fn(&str) -> String) -> Result<Box<dyn Policy>, Failure> {
    check(name)?;
    let entry = registry::find(name).expect("it was checked");
    let wrong = |key: &str, message: &str| Failure::Input(format!("--param {}: {}", flag(key), message.trim_end()));
    let mut text = String::new();
    for (key, value) in params.iter().map(|(key, value)| (key.trim(), value.trim())) {
        let line = format!("{key} = {}\n", toml_value(value));
        DeTable::parse(&line).map_err(|error| wrong(key, error.message()))?;
        text.push_str(&line);
        DeTable::parse(&text).map_err(|error| wrong(key, error.message()))?;
    }
    let table = DeTable::parse(&text).expect("it was parsed line by line");
    (entry.build)(table).map_err(|error| match &error.key {
        Some(key) => wrong(key, &format!("{}{}", error.message, near(key, &error))),
        None => Failure::Input(format!("--param: {}", error.message)),
    })
}

/// The parameter that was meant, where the policy has none of that name: the message names all that it has.
fn near(key: &str, error: &ParamError) -> String {
    let Some((_, known)) = error.message.split_once("expected").filter(|_| error.message.starts_with("unknown field"))
    else {
        return String::new();
    };
    let known = known.split('`').skip(1).step_by(2);
    nearest(key, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// As TOML would write the value: what is no number, truth value, list or table is a text.
fn toml_value(value: &str) -> String {
    let plain = DeTable::parse(&format!("value = {value}\n")).is_ok_and(|table| table.get_ref().len() == 1);
    if plain { value.to_owned() } else { toml::Value::from(value).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(params: &[(&str, &str)]) -> String {
        built("corral", params, |key| format!("corral.{key}")).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn parameters_are_as_people_type_them_and_what_is_wrong_is_named_with_what_is_near() {
        let found = built("corral", &[("late_ms", "5"), ("first_replica", "evenly")], str::to_owned).unwrap();
        assert!(found.params_toml().contains("first_replica = \"evenly\""), "a text needs no quotes");
        assert!(built("corral", &[("first_replica", "\"evenly\"")], str::to_owned).is_ok(), "nor minds them");
        let spaced = built("corral", &[(" late_ms ", " 5"), ("first_replica ", " evenly ")], str::to_owned).unwrap();
        assert_eq!(spaced.params_toml(), found.params_toml(), "nor blanks beside the sign");
        let unknown = said(&[("late_m", "5")]);
        assert!(unknown.starts_with("--param corral.late_m: unknown field `late_m`"), "{unknown}");
        assert!(unknown.ends_with("; did you mean `late_ms`?"), "{unknown}");
        assert!(
            said(&[("slow_start", "7")]).starts_with("--param corral.slow_start: 7"),
            "{}",
            said(&[("slow_start", "7")])
        );
        assert!(said(&[("late_ms", "5"), ("late_ms", "6")]).starts_with("--param corral.late_ms: duplicate key"));
        assert!(said(&[("late ms", "5")]).starts_with("--param corral.late ms: "));
    }
}
