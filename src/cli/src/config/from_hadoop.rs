//! Which of Hadoop's properties say what hintd has to know (names and defaults: yarn-default.xml, hdfs-default.xml and
//! mapred-default.xml of Hadoop 3.4).

use super::draft::Draft;
use super::properties::{Properties, Property};

/// A configuration from what is known.
pub(super) fn draft(properties: &Properties) -> Draft {
    let mut draft = Draft::default();
    for file in &properties.missing {
        draft.note(format!("{file} is not there: what it would say is left out"));
    }
    let mut from = FromHadoop { properties, draft, unnamed: Vec::new(), suffixed: false };
    from.yarn();
    from.resource_managers();
    from.name_nodes();
    from.history_server();
    from.spark_history_server();
    from.security();
    from.draft.set(
        "queues.\"*\"",
        "mode",
        "shadow",
        "begin in shadow: hints are computed and counted, and nothing changes. To switch them on write on, then hintctl reload",
    );
    from.draft
}

struct FromHadoop<'a> {
    properties: &'a Properties,
    draft: Draft,
    /// Of the servers that are looked for: addresses that name no host, with their property and file.
    unnamed: Vec<String>,
    /// Of these servers properties are set with a suffix that does not count.
    suffixed: bool,
}

impl FromHadoop<'_> {
    /// A property; one that can't be filled in is noted.
    fn get(&mut self, name: &str) -> Option<Property> {
        match self.properties.get(name) {
            Ok(property) => property,
            Err(problem) => {
                if !self.draft.notes.contains(&problem) {
                    self.draft.note(problem);
                }
                None
            }
        }
    }

    fn says(&mut self, name: &str, value: &str) -> bool {
        self.get(name).is_some_and(|property| property.value.eq_ignore_ascii_case(value))
    }

    fn number(&mut self, name: &str) -> Option<(i64, String)> {
        let property = self.get(name)?;
        let value = &property.value;
        let number = match value.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16), // Hadoop takes them
            None => value.parse::<i64>(),
        };
        if number.is_err() {
            self.draft.problems.push(format!("{}: \"{value}\" is no whole number", source(name, &property)));
        }
        number.ok().map(|number| (number, source(name, &property)))
    }

    fn yarn(&mut self) {
        let scheduler = self.get("yarn.resourcemanager.scheduler.class");
        let capacity = scheduler.as_ref().is_none_or(|class| class.value.ends_with("CapacityScheduler"));
        let multiples = capacity || scheduler.as_ref().is_some_and(|class| class.value.ends_with("FifoScheduler"));
        let calculator = "yarn.scheduler.capacity.resource-calculator";
        if let Some(property) = self.get(calculator) {
            let kind = if property.value.ends_with("DominantResourceCalculator") { "dominant" } else { "default" };
            self.draft.set("yarn", "resource_calculator", kind, source(calculator, &property));
        }
        for (name, key) in [
            ("yarn.scheduler.minimum-allocation-mb", "minimum_memory_mb"),
            ("yarn.scheduler.minimum-allocation-vcores", "minimum_vcores"),
            ("yarn.scheduler.maximum-allocation-mb", "maximum_memory_mb"),
            ("yarn.scheduler.maximum-allocation-vcores", "maximum_vcores"),
        ] {
            let Some((number, source)) = self.number(name) else { continue };
            self.draft.set("yarn", key, number, source.clone());
            let increment = match key {
                "minimum_memory_mb" => "increment_memory_mb",
                "minimum_vcores" => "increment_vcores",
                _ => continue,
            };
            if multiples {
                self.draft.set("yarn", increment, number, format!("{source}: the scheduler rounds up to multiples"));
            }
        }
        if !capacity {
            if !multiples {
                self.fair_increments();
            }
            let class = scheduler.map(|class| class.value).unwrap_or_default();
            self.draft.note(format!("the scheduler is {class}: hints were tried with CapacityScheduler only"));
        } else {
            self.delays();
        }
    }

    fn fair_increments(&mut self) {
        for (name, key) in [
            ("yarn.resource-types.memory-mb.increment-allocation", "increment_memory_mb"),
            ("yarn.resource-types.vcores.increment-allocation", "increment_vcores"),
        ] {
            if let Some((number, source)) = self.number(name) {
                self.draft.set("yarn", key, number, source);
            }
        }
    }

    /// docs/yarn.md, *What it does to requests*.
    fn delays(&mut self) {
        let name = "yarn.scheduler.capacity.rack-locality-additional-delay";
        let delay = self.number(name);
        if delay.as_ref().is_none_or(|(delay, _)| *delay < 0) {
            let said = delay.map_or_else(|| "is not set".to_owned(), |(delay, _)| format!("is {delay}"));
            self.draft.note(format!(
                "{name} {said}: YARN gives most hinted containers to other nodes before their host reports; set it to 20 or so (docs/yarn.md)"
            ));
        }
        if let Some((0, source)) = self.number("yarn.scheduler.capacity.node-locality-delay") {
            self.draft.note(format!("{source} is 0: YARN does not wait for hinted hosts (docs/yarn.md)"));
        }
    }

    fn resource_managers(&mut self) {
        let https = self.says("yarn.http.policy", "HTTPS_ONLY");
        let (scheme, property, port) = if https {
            ("https", "yarn.resourcemanager.webapp.https.address", 8090)
        } else {
            ("http", "yarn.resourcemanager.webapp.address", 8088)
        };
        let mut suffixes = vec![String::new()];
        let of_each = [property, "yarn.resourcemanager.hostname"];
        if self.says("yarn.resourcemanager.ha.enabled", "true") {
            let Some(ids) = self.get("yarn.resourcemanager.ha.rm-ids") else {
                self.draft.note("yarn.resourcemanager.ha.enabled without yarn.resourcemanager.ha.rm-ids: ResourceManagers are left out");
                return;
            };
            suffixes = list(&ids.value).map(|id| format!(".{id}")).collect();
            let why = format!("yarn.resourcemanager.ha.rm-ids is {} and does not name them", ids.value);
            self.unread(&of_each, |suffix| suffixes.iter().any(|read| read == suffix), &why);
        } else {
            let why = "a suffix counts only where yarn.resourcemanager.ha.enabled is true and yarn.resourcemanager.ha.rm-ids names it";
            self.unread(&of_each, |_| false, why);
        }
        let found: Vec<(String, String)> = suffixes
            .iter()
            .filter_map(|suffix| {
                let host = format!("yarn.resourcemanager.hostname{suffix}");
                self.address(&format!("{property}{suffix}"), &host, port)
            })
            .collect();
        self.half(suffixes.len(), found.len(), "the ResourceManagers");
        self.urls("resource_manager", scheme, (&found[..], port), "the ResourceManager", &of_each);
    }

    /// Says which of the properties are set with a suffix that nobody reads, and why.
    fn unread(&mut self, names: &[&str], is_read: impl Fn(&str) -> bool, why: &str) {
        let mut unread: Vec<String> = Vec::new();
        for name in names {
            let prefix = format!("{name}.");
            let found = self.properties.with_prefix(&prefix);
            let found = found.filter(|(full, _)| !is_read(&full[name.len()..]));
            unread.extend(found.map(|(full, property)| source(full, property)));
        }
        self.suffixed = !unread.is_empty();
        if self.suffixed {
            let are = if unread.len() == 1 { "is" } else { "are" };
            self.draft.note(format!("{} {are} not read: {why}", unread.join(", ")));
        }
    }

    fn name_nodes(&mut self) {
        if self.says("dfs.webhdfs.enabled", "false") {
            self.draft.note("dfs.webhdfs.enabled is false: the NameNode can't be asked for blocks, feeds have to tell of datasets (docs/operations.md)");
            return;
        }
        let https = self.says("dfs.http.policy", "HTTPS_ONLY");
        let (scheme, property, port) = if https {
            ("https", "dfs.namenode.https-address", 9871)
        } else {
            ("http", "dfs.namenode.http-address", 9870)
        };
        // Its former name is still taken.
        let default = self.get("fs.defaultFS").or_else(|| self.get("fs.default.name"));
        let authority = default.as_ref().and_then(|uri| authority(&uri.value, "hdfs"));
        if let (Some(uri), None) = (&default, &authority) {
            self.draft.note(format!("fs.defaultFS is {}: NameNodes are left out", uri.value));
            return;
        }
        let services: Vec<String> =
            self.get("dfs.nameservices").map(|all| list(&all.value).map(str::to_owned).collect()).unwrap_or_default();
        let service = match (&authority, &services[..]) {
            (Some(name), all) if all.contains(name) => Some(name.clone()),
            (None, [only]) => Some(only.clone()),
            _ => None,
        };
        if services.len() > 1 {
            let which = service.as_deref().unwrap_or("none");
            self.draft.note(format!(
                "dfs.nameservices names {}: hintd asks one file system only, {which}",
                services.join(", ")
            ));
        }
        let suffixes = self.name_node_suffixes(service.as_deref());
        self.unread_name_nodes(property, service.as_deref(), &services, &suffixes);
        let found: Vec<(String, String)> = suffixes
            .iter()
            .filter_map(|suffix| {
                self.address(&format!("{property}{suffix}"), &format!("dfs.namenode.rpc-address{suffix}"), port)
            })
            .collect();
        let found = match (&found[..], &service) {
            ([], None) => {
                self.of_default_file_system(default.as_ref(), authority.as_deref(), port).into_iter().collect()
            }
            _ => found,
        };
        if let Some(ids) = service.as_deref().and_then(|service| self.get(&format!("dfs.ha.namenodes.{service}"))) {
            self.half(list(&ids.value).count(), found.len(), "the NameNodes");
        }
        // Of a nameservice its own properties have to say it: what fs.defaultFS says is known by then.
        let looked_for: Vec<String> = match &service {
            Some(_) => suffixes.iter().map(|suffix| format!("{property}{suffix}")).collect(),
            None => vec![property.to_owned(), "fs.defaultFS".to_owned()],
        };
        let looked_for: Vec<&str> = looked_for.iter().map(String::as_str).collect();
        self.urls("name_node", scheme, (&found[..], port), "the NameNode", &looked_for);
        if !found.is_empty() {
            self.draft.hint(
                "name_node",
                "user = \"hdfs\"    # who may read all paths; without it HDFS takes hintd for dr.who",
            );
            self.draft.note("[name_node] user is not in Hadoop's files: without it HDFS takes hintd for dr.who, who may read public paths only");
        }
    }

    /// The NameNode that the default file system names by its host.
    fn of_default_file_system(
        &mut self,
        uri: Option<&Property>,
        authority: Option<&str>,
        port: u16,
    ) -> Option<(String, String)> {
        let (uri, name) = (uri?, authority?);
        let Some(host) = host_of(name) else {
            self.names_no_host("fs.defaultFS", uri);
            return None;
        };
        if port_of(name).is_none() {
            self.draft.note(format!(
                "fs.defaultFS is hdfs://{name}: {name} is taken for a host; where it is a nameservice (dfs.nameservices of \
                 hdfs-site.xml does not name it), write the addresses of its NameNodes into [name_node] urls"
            ));
        }
        Some((format!("{host}:{port}"), source("fs.defaultFS", uri)))
    }

    fn unread_name_nodes(&mut self, property: &str, service: Option<&str>, services: &[String], suffixes: &[String]) {
        let names = [property, "dfs.namenode.rpc-address"];
        let read = |suffix: &str| suffixes.iter().any(|read| read == suffix);
        match service {
            Some(service) => {
                let other = |suffix: &str| !suffix.starts_with(&format!(".{service}."));
                let why = format!("dfs.ha.namenodes.{service} does not name them");
                self.unread(&names, |suffix| read(suffix) || other(suffix), &why);
            }
            None => {
                let several = |suffix: &str| {
                    services.len() > 1 && services.iter().any(|of| suffix.split('.').nth(1) == Some(of.as_str()))
                };
                let why = "a suffix counts only where dfs.nameservices names its first part, dfs.ha.namenodes.… its second, and \
                           fs.defaultFS is hdfs:// and that nameservice";
                self.unread(&names, several, why);
            }
        }
    }

    fn name_node_suffixes(&mut self, service: Option<&str>) -> Vec<String> {
        let Some(service) = service else { return vec![String::new()] };
        match self.get(&format!("dfs.ha.namenodes.{service}")) {
            Some(ids) => list(&ids.value).map(|id| format!(".{service}.{id}")).collect(),
            None => vec![format!(".{service}"), String::new()],
        }
    }

    fn history_server(&mut self) {
        let https = self.says("mapreduce.jobhistory.http.policy", "HTTPS_ONLY");
        let (scheme, property, port) = if https {
            ("https", "mapreduce.jobhistory.webapp.https.address", 19890)
        } else {
            ("http", "mapreduce.jobhistory.webapp.address", 19888)
        };
        let found: Vec<(String, String)> =
            self.address(property, "mapreduce.jobhistory.address", port).into_iter().collect();
        self.urls(
            "history_server",
            scheme,
            (&found[..], port),
            "the JobHistoryServer",
            &[property, "mapreduce.jobhistory.address"],
        );
    }

    /// Where a cluster has Spark and says where its history server is; nothing is missing where it does not.
    fn spark_history_server(&mut self) {
        const ADDRESS: &str = "spark.yarn.historyServer.address";
        let Some(said) = self.get(ADDRESS) else { return };
        let tls = ["spark.ssl.historyServer.enabled", "spark.ssl.enabled"].iter().any(|name| self.says(name, "true"));
        let (scheme, address) = match said.value.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
            _ => (if tls { "https" } else { "http" }, said.value.as_str()),
        };
        let address = address.trim_end_matches('/');
        if host_of(address).is_none() {
            self.names_no_host(ADDRESS, &said);
            self.urls("spark_history_server", scheme, (&[][..], 18080), "Spark's history server", &[ADDRESS]);
            return;
        }
        let port = if port_of(address).is_none() { ":18080" } else { "" };
        let found = [(format!("{address}{port}"), source(ADDRESS, &said))];
        self.urls("spark_history_server", scheme, (&found[..], 18080), "Spark's history server", &[ADDRESS]);
    }

    /// Host and port, and who says so: the property, or the host of another with the default port. Wildcards name no host.
    /// What follows the ':' is taken as it is: where it is no port, hintd's own check names it.
    fn address(&mut self, property: &str, host_property: &str, port: u16) -> Option<(String, String)> {
        let said = self.get(property);
        let named = said.as_ref().and_then(|said| Some((host_of(&said.value)?, said)));
        if let Some((host, said)) = named {
            let address = if port_of(&said.value).is_some() { said.value.clone() } else { format!("{host}:{port}") };
            return Some((address, source(property, said)));
        }
        let other = self.get(host_property);
        if let Some((host, other)) = other.as_ref().and_then(|other| Some((host_of(&other.value)?, other))) {
            let port = said.as_ref().and_then(|said| port_of(&said.value)).map_or(port.to_string(), str::to_owned);
            return Some((format!("{host}:{port}"), source(host_property, other)));
        }
        for (name, said) in [(property, said), (host_property, other)] {
            said.iter().for_each(|said| self.names_no_host(name, said));
        }
        None
    }

    fn names_no_host(&mut self, name: &str, said: &Property) {
        self.unnamed.push(format!("{} is {}", source(name, said), said.value));
    }

    /// Of a pair both have to be there: after a failover hintd would ask nobody.
    fn half(&mut self, expected: usize, found: usize, who: &str) {
        if (1..expected).contains(&found) {
            let unnamed = match &self.unnamed[..] {
                [] => String::new(),
                unnamed => format!(" ({}, which names no host)", unnamed.join(", ")),
            };
            self.draft.note(format!(
                "only {found} of {expected} addresses of {who} are said{unnamed}: the others are left out; add them to urls"
            ));
        }
    }

    /// `port`: Hadoop's default, for an example where none is found in the properties `from`.
    fn urls(
        &mut self,
        section: &'static str,
        scheme: &str,
        (found, port): (&[(String, String)], u16),
        who: &str,
        from: &[&str],
    ) {
        let unnamed = std::mem::take(&mut self.unnamed);
        // Of the servers that were just looked for.
        let suffixed = std::mem::take(&mut self.suffixed);
        if found.is_empty() {
            let why = match &unnamed[..] {
                [] if suffixed => format!("{} not set without a suffix", said_of(from)),
                [] => format!("{} not set, and Hadoop's default names no host", said_of(from)),
                unnamed => format!("{}, which names no host", unnamed.join(", ")),
            };
            let instead = format!("write urls = [\"{scheme}://HOST:{port}\"] with its host there");
            self.draft.note(format!("no address of {who} ({why}): [{section}] urls is left out; {instead}"));
            return;
        }
        let urls: Vec<toml::Value> = found.iter().map(|(address, _)| format!("{scheme}://{address}").into()).collect();
        let because: Vec<&str> = found.iter().map(|(_, source)| &**source).collect();
        self.draft.set(section, "urls", toml::Value::Array(urls), because.join(", "));
        if scheme == "https" {
            self.draft.hint(section, "ca_file = \"/etc/hintd/ca.pem\"    # who signed the certificates, where the system does not trust them");
            self.draft.note(format!(
                "[{section}] urls are https: name ca_file there where this machine does not trust who signed the certificates"
            ));
        }
    }

    /// Who each server is to Kerberos, as comments beside its addresses: hintd has no key for it, a successor or a proxy may.
    fn principals(&mut self) {
        for (section, names) in [
            (
                "resource_manager",
                &["yarn.resourcemanager.principal", "yarn.resourcemanager.webapp.spnego-principal"][..],
            ),
            ("name_node", &["dfs.namenode.kerberos.principal", "dfs.namenode.kerberos.internal.spnego.principal"][..]),
            ("history_server", &["mapreduce.jobhistory.principal", "mapreduce.jobhistory.webapp.spnego-principal"][..]),
            ("spark_history_server", &["spark.history.kerberos.principal"][..]),
        ] {
            for name in names {
                let with_suffix = format!("{name}.");
                let suffixed = self.properties.with_prefix(&with_suffix).map(|(full, _)| full.to_owned());
                let all: Vec<String> = std::iter::once((*name).to_owned()).chain(suffixed).collect();
                for name in all {
                    let Some(property) = self.get(&name) else { continue };
                    let said = format!("Kerberos: {} is {}", source(&name, &property), property.value);
                    // A stranger's value makes no lines.
                    if !self.draft.hint(section, said.escape_debug().to_string()) {
                        self.draft.note(format!("{said}, and [{section}] is left out"));
                    }
                }
            }
        }
    }

    fn security(&mut self) {
        self.principals();
        if self.says("hadoop.security.authentication", "kerberos") {
            self.draft.note("hadoop.security.authentication is kerberos: hintd names itself by user.name and knows no Kerberos; web interfaces that want a ticket refuse it (docs/yarn.md)");
        }
        if let Some(script) = self.get("net.topology.script.file.name") {
            self.draft.note(format!("racks come from {}: hintd gets them from the ResourceManager", script.value));
        }
    }
}

/// `a and b are`
fn said_of(names: &[&str]) -> String {
    format!("{} {}", names.join(" and "), if names.len() == 1 { "is" } else { "are" })
}

fn source(name: &str, property: &Property) -> String {
    format!("{name} ({})", property.file)
}

fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn authority(uri: &str, scheme: &str) -> Option<String> {
    let rest = uri.strip_prefix(scheme)?.strip_prefix("://")?;
    Some(rest.split('/').next().unwrap_or_default().to_owned()).filter(|authority| !authority.is_empty())
}

/// What stands for a port in an address, if anything does; not the last part of an IPv6 address in brackets.
fn port_of(address: &str) -> Option<&str> {
    address.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.contains(']'))
}

/// The host of an address with or without a port; none where it stands for every address of a machine.
fn host_of(address: &str) -> Option<String> {
    let host = match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.is_empty() => host,
        _ => address,
    };
    (!["0.0.0.0", "::", "[::]", ""].contains(&host)).then(|| host.to_owned())
}
