//! What `lldpcli` prints of neighbors as JSON, in each of its shapes.
//!
//! `-f json` has an object of interfaces by name, or where there are several a list of objects of one; the chassis is an
//! object by the switch's name, or without one the thing itself. `-f json0` has a list everywhere, and names inside.

use hintd_model::units::BitsPerSec;
use serde_json::{Map, Value};

/// A neighbor that is heard on an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Neighbor {
    pub(super) interface: String,
    /// The name that it gives itself, else its chassis id.
    pub(super) switch: String,
    /// Its port.
    pub(super) port: String,
    /// Speed of the port as it says itself.
    pub(super) rate: Option<BitsPerSec>,
    /// Whether it is a bridge or router; `None`: it does not say.
    pub(super) forwards: Option<bool>,
}

/// All neighbors of an output.
pub(super) fn neighbors(value: &Value) -> Result<Vec<Neighbor>, String> {
    let lldp = value.get("lldp").ok_or("there is no \"lldp\" in it: it is no output of lldpcli -f json")?;
    let mut found = Vec::new();
    for interfaces in each(lldp).filter_map(|lldp| lldp.get("interface")) {
        for entry in each(interfaces) {
            let Some(fields) = entry.as_object() else { return Err(format!("{entry} is no interface")) };
            match fields.get("name").and_then(Value::as_str) {
                Some(name) => found.extend(neighbor(name, fields)),
                None => {
                    let named = fields.iter().flat_map(|(name, bodies)| each(bodies).map(move |body| (name, body)));
                    found.extend(named.filter_map(|(name, body)| neighbor(name, body.as_object()?)));
                }
            }
        }
    }
    Ok(found)
}

/// The entries of a list; what is none is its own only entry.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

fn first<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    each(fields.get(name)?).next()
}

/// A text, however deep it is wrapped.
fn text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(list) => text(list.first()?),
        Value::Object(fields) => text(fields.get("value")?),
        _ => None,
    }
}

fn neighbor(interface: &str, fields: &Map<String, Value>) -> Option<Neighbor> {
    let chassis = first(fields, "chassis")?.as_object()?;
    let (name, chassis) = match chassis.iter().next() {
        Some((name, inner)) if !chassis.contains_key("id") => (Some(name.as_str()), inner.as_object()?),
        _ => (chassis.get("name").and_then(text), chassis),
    };
    let switch = name.filter(|name| !name.is_empty()).or_else(|| chassis.get("id").and_then(text))?;
    let port = first(fields, "port").and_then(Value::as_object);
    let (port, rate) = port.map_or((String::new(), None), |port| (port_name(port), port_rate(port)));
    Some(Neighbor {
        interface: interface.to_owned(),
        // Names with white space, as some switches have by default, are no names in files.
        switch: switch.split_whitespace().collect::<Vec<_>>().join("-"),
        port,
        rate,
        forwards: forwards(chassis),
    })
}

/// The interface's name where the switch says it, else its description, else whatever tells it from others.
fn port_name(port: &Map<String, Value>) -> String {
    let id = first(port, "id");
    let kind = id.and_then(|id| id.get("type")).and_then(Value::as_str);
    let id = id.and_then(text);
    let description = port.get("descr").and_then(text);
    let name = if matches!(kind, Some("ifname" | "local")) { id.or(description) } else { description.or(id) };
    name.unwrap_or_default().to_owned()
}

fn port_rate(port: &Map<String, Value>) -> Option<BitsPerSec> {
    let negotiation = first(port, "auto-negotiation")?.as_object()?;
    // Not what it advertises: that list ends at 1000BASE-T, whatever the port runs at.
    negotiation.get("current").and_then(text).and_then(speed)
}

/// The speed of a medium: `10GigBaseLR`, `1000BaseTFD - …`, `100GBASE-SR4`, `2.5GBASE-T`.
fn speed(medium: &str) -> Option<BitsPerSec> {
    let end = medium.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let number: f64 = medium[..end].parse().ok()?;
    let unit = medium[end..].to_ascii_lowercase();
    let factor = match &unit {
        unit if unit.starts_with("gbase") || unit.starts_with("gigbase") => 1e9,
        unit if unit.starts_with("base") => 1e6,
        _ => return None,
    };
    Some(BitsPerSec((number * factor).round() as u64)).filter(|rate| rate.0 > 0)
}

fn forwards(chassis: &Map<String, Value>) -> Option<bool> {
    let capabilities = each(chassis.get("capability")?);
    let known =
        capabilities.filter(|one| ["Bridge", "Router"].contains(&one.get("type").and_then(text).unwrap_or_default()));
    let enabled: Vec<bool> = known.filter_map(|one| one.get("enabled").and_then(Value::as_bool)).collect();
    (!enabled.is_empty()).then(|| enabled.contains(&true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(id: &str) -> Value {
        json!({
            "via": "LLDP", "rid": "1", "age": "0 day, 00:02:10",
            "chassis": { "tor-1": {
                "id": { "type": "mac", "value": "00:1c:73:00:00:01" }, "descr": "a switch", "mgmt-ip": "10.0.0.1",
                "capability": [{ "type": "Bridge", "enabled": true }, { "type": "Router", "enabled": false }],
            } },
            "port": {
                "id": { "type": "ifname", "value": id }, "descr": "to n1", "ttl": "120",
                "auto-negotiation": { "supported": false, "enabled": false, "current": "10GigBaseLR - R fiber over 1310 nm optics" },
            },
        })
    }

    fn expected(interface: &str, port: &str) -> Neighbor {
        Neighbor {
            interface: interface.into(),
            switch: "tor-1".into(),
            port: port.into(),
            rate: Some(BitsPerSec(10_000_000_000)),
            forwards: Some(true),
        }
    }

    #[test]
    fn one_interface_is_an_object_and_several_are_a_list() {
        let one = json!({ "lldp": { "interface": { "eth0": body("Ethernet1") } } });
        assert_eq!(neighbors(&one).unwrap(), [expected("eth0", "Ethernet1")]);
        let two = json!({ "lldp": { "interface": [{ "eth0": body("Ethernet1") }, { "eth1": body("Ethernet2") }] } });
        assert_eq!(neighbors(&two).unwrap(), [expected("eth0", "Ethernet1"), expected("eth1", "Ethernet2")]);
        assert_eq!(neighbors(&json!({ "lldp": {} })).unwrap(), []);
        assert!(neighbors(&json!({ "interface": {} })).unwrap_err().contains("no \"lldp\""));
        assert!(neighbors(&json!({ "lldp": { "interface": [5] } })).unwrap_err().contains("5 is no interface"));
    }

    #[test]
    fn json0_has_lists_everywhere() {
        let value = json!({ "lldp": [{ "interface": [{
            "name": "eth0", "via": "LLDP",
            "chassis": [{
                "id": [{ "type": "mac", "value": "00:1c:73:00:00:01" }], "name": [{ "value": "tor-1" }],
                "capability": [{ "type": "Bridge", "enabled": true }],
            }],
            "port": [{
                "id": [{ "type": "mac", "value": "00:1c:73:00:00:02" }], "descr": [{ "value": "Ethernet1" }],
                "auto-negotiation": [{ "supported": true, "enabled": true, "advertised": [
                    { "type": "1000Base-T", "hd": false, "fd": true },
                ], "current": [{ "value": "10GBASE-T" }] }],
            }],
        }] }] });
        assert_eq!(neighbors(&value).unwrap(), [expected("eth0", "Ethernet1")]);
    }

    #[test]
    fn what_a_port_advertises_is_not_its_speed() {
        let value = json!({ "lldp": { "interface": { "eth0": {
            "chassis": { "tor-1": { "id": { "type": "mac", "value": "00:1c:73:00:00:01" } } },
            "port": { "id": { "type": "ifname", "value": "et1" }, "auto-negotiation": {
                "advertised": { "type": "1000Base-T", "hd": false, "fd": true }, "current": "unknown",
            } },
        } } } });
        assert_eq!(neighbors(&value).unwrap()[0].rate, None);
    }

    #[test]
    fn a_switch_without_a_name_is_called_by_its_id_and_a_station_is_none() {
        let value = json!({ "lldp": { "interface": { "eth0": {
            "chassis": { "id": { "type": "mac", "value": "00:1c:73:00:00:01" }, "capability": { "type": "Bridge", "enabled": false } },
            "port": { "id": { "type": "mac", "value": "00:1c:73:00:00:02" } },
        } } } });
        let found = neighbors(&value).unwrap();
        assert_eq!((found[0].switch.as_str(), found[0].port.as_str()), ("00:1c:73:00:00:01", "00:1c:73:00:00:02"));
        assert_eq!((found[0].rate, found[0].forwards), (None, Some(false)));
    }

    #[test]
    fn speeds_are_read_off_media() {
        for (medium, bits) in [
            ("10GigBaseCX4 - X copper over 8 pair 100-Ohm balanced cable", 10_000_000_000),
            ("1000BaseTFD - Four-pair Category 5 UTP, full duplex mode", 1_000_000_000),
            ("100BASE-LX10", 100_000_000),
            ("40GbasePSM4", 40_000_000_000),
            ("100GBASE-SR4", 100_000_000_000),
            ("2.5GBASE-T", 2_500_000_000),
        ] {
            assert_eq!(speed(medium), Some(BitsPerSec(bits)), "{medium}");
        }
        for medium in ["unknown", "", "10", "Aui"] {
            assert_eq!(speed(medium), None, "{medium}");
        }
    }
}
