//! Folders of Hadoop files, whole, half and wrong.

use super::*;
use tempfile::TempDir;

fn folder(files: &[(&str, &[(&str, &str)])]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (file, properties) in files {
        let rows = properties
            .iter()
            .map(|(name, value)| format!("<property><name>{name}</name><value>{value}</value></property>\n"));
        std::fs::write(
            dir.path().join(file),
            format!("<?xml version=\"1.0\"?>\n<configuration>\n{}</configuration>", rows.collect::<String>()),
        )
        .unwrap();
    }
    dir
}

/// Lines that are no comments, and notes.
fn made(dir: &TempDir) -> (Vec<String>, Vec<String>) {
    let draft = from_hadoop::draft(&Properties::read(dir.path()).unwrap());
    let text = draft.text(dir.path());
    check(dir.path(), &draft, &text, true).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    assert_eq!(lines.split_off(lines.len() - 2), ["[queues.\"*\"]", "mode = \"shadow\""], "whatever a cluster says");
    (lines, draft.notes)
}

/// What is refused, and notes.
fn refused(dir: &TempDir) -> (String, Vec<String>) {
    let properties = Properties::read(dir.path()).unwrap();
    let draft = from_hadoop::draft(&properties);
    let mut notes = Vec::new();
    let refused = sound(dir.path(), &properties, &draft, &draft.text(dir.path()), |note| notes.push(note.clone()));
    (refused.map_or_else(|refused| refused.to_string(), |()| String::new()), notes)
}

#[test]
fn a_cluster_with_two_of_each_is_read_whole() {
    let dir = folder(&[
        ("core-site.xml", &[("fs.defaultFS", "hdfs://prod/"), ("hadoop.security.authentication", "kerberos")]),
        (
            "hdfs-site.xml",
            &[
                ("dfs.nameservices", "prod"),
                ("dfs.ha.namenodes.prod", "nn1, nn2"),
                ("dfs.namenode.http-address.prod.nn1", "master1:50070"),
                ("dfs.namenode.rpc-address.prod.nn2", "master2:8020"),
            ],
        ),
        (
            "yarn-site.xml",
            &[
                ("yarn.resourcemanager.ha.enabled", "true"),
                ("yarn.resourcemanager.ha.rm-ids", "rm1,rm2"),
                ("yarn.resourcemanager.hostname.rm1", "master1"),
                ("yarn.resourcemanager.hostname.rm2", "master2"),
                ("yarn.resourcemanager.webapp.https.address.rm2", "master2.example:9443"),
                ("yarn.http.policy", "HTTPS_ONLY"),
                ("yarn.scheduler.minimum-allocation-mb", "512"),
                ("cap", "16384"),
                ("yarn.scheduler.maximum-allocation-mb", "${cap}"),
            ],
        ),
        (
            "mapred-site.xml",
            &[
                ("mapreduce.jobhistory.webapp.address", "0.0.0.0:19999"),
                ("mapreduce.jobhistory.address", "history:10020"),
            ],
        ),
        (
            "capacity-scheduler.xml",
            &[
                (
                    "yarn.scheduler.capacity.resource-calculator",
                    "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
                ),
                ("yarn.scheduler.capacity.rack-locality-additional-delay", "20"),
            ],
        ),
    ]);
    let spark =
        "# Spark's\nspark.eventLog.enabled true\nspark.yarn.historyServer.address=http://history:18081/\nother 1\n";
    std::fs::write(dir.path().join("spark-defaults.conf"), spark).unwrap();
    let (lines, notes) = made(&dir);
    assert_eq!(
        lines,
        [
            "[yarn]",
            "resource_calculator = \"dominant\"",
            "minimum_memory_mb = 512",
            "increment_memory_mb = 512",
            "maximum_memory_mb = 16384",
            "[resource_manager]",
            "urls = [\"https://master1:8090\", \"https://master2.example:9443\"]",
            "[name_node]",
            "urls = [\"http://master1:50070\", \"http://master2:9870\"]",
            "[history_server]",
            "urls = [\"http://history:19999\"]",
            "[spark_history_server]",
            "urls = [\"http://history:18081\"]",
        ]
    );
    let said =
        ["[resource_manager] urls are https: name ca_file", "[name_node] user is not in Hadoop's files", "kerberos"];
    assert!(notes.len() == 3 && notes.iter().zip(said).all(|(note, said)| note.contains(said)), "{notes:#?}");
    let text = from_hadoop::draft(&Properties::read(dir.path()).unwrap()).text(dir.path());
    let (head, _) = text.split_once("\n[").unwrap();
    let told: Vec<&str> = head.lines().filter_map(|line| line.strip_prefix("# - ")).collect();
    assert_eq!(told, notes, "they go with the file, above its sections: {head}");
    for hint in [
        "# ca_file = \"/etc/hintd/ca.pem\"  ",
        "# user = \"hdfs\"  ",
        "To switch them on write on, then hintctl reload",
    ] {
        assert!(text.contains(hint), "no {hint:?} in\n{text}");
    }
}

#[test]
fn kerberos_principals_stand_beside_their_server() {
    let dir = folder(&[
        ("core-site.xml", &[("fs.defaultFS", "hdfs://nn:8020/")]),
        (
            "hdfs-site.xml",
            &[
                ("dfs.namenode.kerberos.principal", "nn/_HOST@EXAMPLE.COM"),
                ("dfs.namenode.kerberos.internal.spnego.principal", "HTTP/_HOST@EXAMPLE.COM"),
            ],
        ),
        (
            "yarn-site.xml",
            &[
                ("yarn.resourcemanager.hostname", "rm"),
                ("yarn.resourcemanager.principal", "rm/_HOST@EXAMPLE.COM\n[page]\nenabled = true"),
            ],
        ),
        ("mapred-site.xml", &[("mapreduce.jobhistory.principal", "jhs/_HOST@EXAMPLE.COM")]),
    ]);
    let text = from_hadoop::draft(&Properties::read(dir.path()).unwrap()).text(dir.path());
    let section = |name: &str| {
        let start = text.find(&format!("[{name}]\n")).unwrap_or_else(|| panic!("no {name} in\n{text}"));
        text[start..].split("\n\n").next().unwrap().to_owned()
    };
    let said = "# Kerberos: dfs.namenode.kerberos.principal (hdfs-site.xml) is nn/_HOST@EXAMPLE.COM\n";
    assert!(section("name_node").contains(said), "{text}");
    assert!(section("name_node").contains("internal.spnego.principal (hdfs-site.xml) is HTTP/_HOST@EXAMPLE.COM"));
    assert!(section("resource_manager").contains("(yarn-site.xml) is rm/_HOST@EXAMPLE.COM\\n[page]"), "{text}");
    assert!(!text.contains("\n[page]"), "a value makes no lines:\n{text}");
    let (_, notes) = made(&dir);
    let left_out =
        "mapreduce.jobhistory.principal (mapred-site.xml) is jhs/_HOST@EXAMPLE.COM, and [history_server] is left out";
    assert!(notes.iter().any(|note| note.contains(left_out)), "{notes:#?}");
}

#[test]
fn where_spark_keeps_history_is_said_by_sparks_defaults() {
    let urls = |spark: &str| {
        let dir = folder(&[("yarn-site.xml", &[("yarn.resourcemanager.hostname", "rm")])]);
        std::fs::write(dir.path().join("spark-defaults.conf"), spark).unwrap();
        let (lines, notes) = made(&dir);
        let at = lines.iter().position(|line| line == "[spark_history_server]");
        (at.map(|at| lines[at + 1].clone()), notes.join("\n"))
    };
    let found = |text: &str| urls(text).0.unwrap_or_default();
    assert_eq!(found("spark.yarn.historyServer.address history:18080"), "urls = [\"http://history:18080\"]");
    assert_eq!(found("spark.yarn.historyServer.address: history"), "urls = [\"http://history:18080\"]");
    let tls = "spark.ssl.historyServer.enabled true\nspark.yarn.historyServer.address  history:18480\n";
    assert_eq!(found(tls), "urls = [\"https://history:18480\"]");
    let own = "spark.yarn.historyServer.address ${hadoopconf-yarn.resourcemanager.hostname}:18080";
    let (none, notes) = urls(own);
    assert!(
        none.is_none() && notes.contains("spark.yarn.historyServer.address (spark-defaults.conf) is left out"),
        "{notes}"
    );
    let (none, notes) = urls("spark.executor.memory 4g");
    assert!(none.is_none() && !notes.contains("park"), "{notes}");
}

#[test]
fn half_a_configuration_gives_half_of_one_and_says_so() {
    let dir = folder(&[(
        "yarn-site.xml",
        &[("yarn.resourcemanager.hostname", "rm"), ("yarn.scheduler.minimum-allocation-mb", "${env.MIN}")],
    )]);
    let (lines, notes) = made(&dir);
    assert_eq!(lines, ["[resource_manager]", "urls = [\"http://rm:8088\"]"]);
    for said in [
        "core-site.xml is not there",
        "yarn.scheduler.minimum-allocation-mb (yarn-site.xml) is left out: nothing here says what ${env.MIN} is",
        "rack-locality-additional-delay is not set",
        "[name_node] urls is left out",
        "[history_server] urls is left out",
    ] {
        assert!(notes.iter().any(|note| note.contains(said)), "{said}: {notes:?}");
    }
}

#[test]
fn half_of_a_pair_is_said() {
    let dir = folder(&[
        (
            "yarn-site.xml",
            &[
                ("yarn.resourcemanager.ha.enabled", "true"),
                ("yarn.resourcemanager.ha.rm-ids", "rm1,rm2"),
                ("yarn.resourcemanager.hostname.rm1", "master1"),
            ],
        ),
        (
            "hdfs-site.xml",
            &[
                ("dfs.nameservices", "prod"),
                ("dfs.ha.namenodes.prod", "nn1,nn2"),
                ("dfs.namenode.http-address.prod.nn2", "master2:9870"),
            ],
        ),
    ]);
    let (lines, notes) = made(&dir);
    assert!(lines.contains(&"urls = [\"http://master1:8088\"]".to_owned()), "{lines:?}");
    for who in ["the ResourceManagers", "the NameNodes"] {
        let said = format!("only 1 of 2 addresses of {who} are said");
        assert!(notes.iter().any(|note| note.contains(&said)), "{said}: {notes:?}");
    }
}

#[test]
fn a_property_may_be_written_as_attributes_and_by_its_former_name() {
    let dir = TempDir::new().unwrap();
    let text = "<configuration><property name=\"fs.default.name\" value=\"hdfs://master:9000\"/></configuration>";
    std::fs::write(dir.path().join("core-site.xml"), text).unwrap();
    assert_eq!(made(&dir).0, ["[name_node]", "urls = [\"http://master:9870\"]"]);
}

#[test]
fn all_that_is_wrong_with_the_files_is_named_at_once_with_its_line() {
    let dir = folder(&[
        ("hdfs-site.xml", &[("dfs.nameservices", "ns1")]),
        ("mapred-site.xml", &[("mapreduce.jobhistory.webapp.address", "history:99999")]),
    ]);
    let write = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).unwrap();
    write("core-site.xml", "<configuration>\n<property>\n<name>fs.defaultFS</name>\n");
    write("yarn-site.xml", "<configuration>\n<property><name>a</value></property>\n</configuration>");
    write("capacity-scheduler.xml", "<configuration>\n<property/>\n<property/>\n</configuration>");
    let (refused, _) = refused(&dir);
    let place = |file: &str| dir.path().join(file).display().to_string();
    for said in [
        format!("{}: line 3: the root node was opened but never closed", place("core-site.xml")),
        format!("{}: line 2: expected 'name' tag, not 'value'", place("yarn-site.xml")),
        format!("{}: line 2: a property without a name", place("capacity-scheduler.xml")),
        format!("{}: line 3: a property without a name", place("capacity-scheduler.xml")),
        "mapreduce.jobhistory.webapp.address (mapred-site.xml): hintd would refuse history_server.urls".to_owned(),
    ] {
        assert!(refused.contains(&said), "no {said:?} in\n{refused}");
    }
    assert_eq!(refused.lines().count(), 5, "{refused}");
}

#[test]
fn a_size_that_is_no_number_is_refused_and_its_fellows_are_not_blamed() {
    let dir = folder(&[(
        "yarn-site.xml",
        &[("yarn.scheduler.minimum-allocation-mb", "abc"), ("yarn.scheduler.maximum-allocation-mb", "100")],
    )]);
    let (said, _) = refused(&dir);
    assert!(
        said.ends_with(": yarn.scheduler.minimum-allocation-mb (yarn-site.xml): \"abc\" is no whole number"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    let hexadecimal = folder(&[("yarn-site.xml", &[("yarn.scheduler.minimum-allocation-mb", "0x200")])]);
    assert_eq!(made(&hexadecimal).0[1], "minimum_memory_mb = 512", "as Hadoop reads it");
}

#[test]
fn what_is_set_with_a_suffix_that_does_not_count_is_named_with_what_would_make_it_count() {
    let rm1: &[(&str, &str)] = &[("yarn.resourcemanager.webapp.address.rm1", "rm1:99999")];
    let (lines, notes) = made(&folder(&[("yarn-site.xml", rm1)]));
    assert!(lines.is_empty(), "{lines:?}");
    for said in [
        "yarn.resourcemanager.webapp.address.rm1 (yarn-site.xml) is not read: a suffix counts only where \
         yarn.resourcemanager.ha.enabled is true and yarn.resourcemanager.ha.rm-ids names it",
        "(yarn.resourcemanager.webapp.address and yarn.resourcemanager.hostname are not set without a suffix)",
    ] {
        assert!(notes.iter().any(|note| note.contains(said)), "{said}: {notes:#?}");
    }
    let pair: &[(&str, &str)] = &[
        ("yarn.resourcemanager.ha.enabled", "true"),
        ("yarn.resourcemanager.ha.rm-ids", "rm1"),
        ("yarn.resourcemanager.hostname.rm1", "m1"),
        ("yarn.resourcemanager.hostname.rm2", "m2"),
    ];
    let (_, notes) = made(&folder(&[("yarn-site.xml", pair)]));
    let said = "hostname.rm2 (yarn-site.xml) is not read: yarn.resourcemanager.ha.rm-ids is rm1 and does not name";
    assert!(notes.iter().any(|note| note.contains(said)), "{notes:#?}");
    let nn1: &[(&str, &str)] = &[("dfs.namenode.http-address.ns1.nn1", "nn1:9870")];
    let (lines, notes) = made(&folder(&[("hdfs-site.xml", nn1)]));
    assert!(lines.is_empty(), "{lines:?}");
    let said = "dfs.namenode.http-address.ns1.nn1 (hdfs-site.xml) is not read: a suffix counts only where dfs.nameservices names";
    assert!(notes.iter().any(|note| note.contains(said)), "{notes:#?}");
}

#[test]
fn a_default_file_system_that_is_named_is_not_said_to_be_missing() {
    let name_node = |files: &[(&str, &[(&str, &str)])]| made(&folder(files)).1.join("\n");
    let core: (&str, &[(&str, &str)]) = ("core-site.xml", &[("fs.defaultFS", "hdfs://ns1")]);
    let said = name_node(&[core, ("hdfs-site.xml", &[("dfs.nameservices", "ns1"), ("dfs.ha.namenodes.ns1", "nn1")])]);
    assert!(
        said.contains("(dfs.namenode.http-address.ns1.nn1 is not set, and") && !said.contains("fs.defaultFS"),
        "{said}"
    );
    let said = name_node(&[("core-site.xml", &[("fs.defaultFS", "hdfs://0.0.0.0:9000")])]);
    assert!(said.contains("fs.defaultFS (core-site.xml) is hdfs://0.0.0.0:9000, which names no host"), "{said}");
    let alone = folder(&[core]);
    let (lines, notes) = made(&alone);
    assert_eq!(lines, ["[name_node]", "urls = [\"http://ns1:9870\"]"]);
    let said = "fs.defaultFS is hdfs://ns1: ns1 is taken for a host; where it is a nameservice";
    assert!(notes.iter().any(|note| note.contains(said)), "{notes:#?}");
    let port = name_node(&[("core-site.xml", &[("fs.defaultFS", "hdfs://master:9000")])]);
    assert!(!port.contains("nameservice"), "{port}");
}

#[test]
fn one_name_node_is_that_of_the_default_file_system() {
    let dir = folder(&[("core-site.xml", &[("fs.defaultFS", "hdfs://master:9000")])]);
    assert_eq!(made(&dir).0, ["[name_node]", "urls = [\"http://master:9870\"]"]);
    let dir = folder(&[("core-site.xml", &[("fs.defaultFS", "s3a://bucket/")])]);
    let (lines, notes) = made(&dir);
    assert!(lines.is_empty() && notes.iter().any(|note| note.contains("fs.defaultFS is s3a://bucket/")), "{notes:?}");
}

#[test]
fn what_is_final_stays_and_values_that_name_themselves_end() {
    let dir = folder(&[("core-site.xml", &[("fs.defaultFS", "hdfs://${a}/"), ("a", "${b}"), ("b", "${a}")])]);
    assert!(made(&dir).1.iter().any(|note| note.starts_with("fs.defaultFS (core-site.xml) is left out")));
    let dir = TempDir::new().unwrap();
    let row = |value: &str, end: &str| {
        format!("<property><name>yarn.resourcemanager.hostname</name><value>{value}</value>{end}</property>")
    };
    let text = format!("<configuration>{}{}</configuration>", row("one", "<final>true</final>"), row("two", ""));
    std::fs::write(dir.path().join("yarn-site.xml"), text).unwrap();
    assert_eq!(made(&dir).0[1], "urls = [\"http://one:8088\"]");
}

#[test]
fn what_is_no_configuration_is_named() {
    let cases = [
        ("<configuration><property>", "yarn-site.xml"),
        ("<config/>", "<config> where <configuration> is expected"),
        ("<configuration>\n<property><value>1</value></property></configuration>", "line 2: a property without a name"),
        (
            "<configuration>\n\n<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" href=\"a\"/></configuration>",
            "line 3: <include> is not followed",
        ),
        ("<!DOCTYPE c [<!ENTITY a \"b\">]><configuration>&a;</configuration>", "yarn-site.xml"),
    ];
    for (text, said) in cases {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("yarn-site.xml"), text).unwrap();
        let (refused, notes) = refused(&dir);
        assert!(refused.contains(said) && refused.contains("yarn-site.xml: line "), "{refused}");
        assert!(notes.is_empty(), "what a broken file says seems not to be set: {notes:?}");
    }
    let empty = TempDir::new().unwrap();
    assert!(Properties::read(empty.path()).unwrap_err().to_string().contains("none of core-site.xml"));
}

#[test]
fn values_with_markup_stay_values() {
    let dir = folder(&[("yarn-site.xml", &[("yarn.resourcemanager.hostname", "rm\"]\n[listen]\ngrpc = \"0.0.0.0:1")])]);
    let draft = from_hadoop::draft(&Properties::read(dir.path()).unwrap());
    let text = draft.text(dir.path());
    let written: toml::Table = text.parse().unwrap();
    assert!(!written.contains_key("listen"), "{text}");
    assert!(check(dir.path(), &draft, &text, true).is_err());
}

#[test]
fn what_is_no_port_is_refused_and_never_replaced_by_the_default() {
    for (address, host) in [("rm2:99999", "r"), ("rm2:abc", "r"), ("rm2:", "r"), (":8089", "r"), ("0.0.0.0:65536", "r")]
    {
        let properties: &[(&str, &str)] =
            &[("yarn.resourcemanager.webapp.address", address), ("yarn.resourcemanager.hostname", host)];
        let dir = folder(&[("yarn-site.xml", properties)]);
        let draft = from_hadoop::draft(&Properties::read(dir.path()).unwrap());
        let text = draft.text(dir.path());
        let said = check(dir.path(), &draft, &text, true).map_or_else(|refused| refused.to_string(), |_| text);
        assert!(said.contains("hintd would refuse resource_manager.urls"), "{address}: {said}");
    }
}

#[test]
fn values_that_the_daemon_would_refuse_are_named_by_their_properties() {
    let dir = folder(&[
        (
            "yarn-site.xml",
            &[
                ("yarn.resourcemanager.hostname", "r m"),
                ("yarn.scheduler.minimum-allocation-mb", "-5"),
                ("yarn.scheduler.maximum-allocation-mb", "8192"),
            ],
        ),
        ("mapred-site.xml", &[("mapreduce.jobhistory.address", "h j:1")]),
    ]);
    let draft = from_hadoop::draft(&Properties::read(dir.path()).unwrap());
    let said = check(dir.path(), &draft, &draft.text(dir.path()), true).unwrap_err().to_string();
    for words in [
        "yarn.scheduler.minimum-allocation-mb (yarn-site.xml): hintd would refuse yarn.minimum_memory_mb: ",
        "yarn.resourcemanager.hostname (yarn-site.xml): hintd would refuse resource_manager.urls",
        "mapreduce.jobhistory.address (mapred-site.xml): hintd would refuse history_server.urls",
    ] {
        assert!(said.contains(words), "no {words:?} in\n{said}");
    }
    assert!(!said.contains("hintd.toml") && said.contains("-5"), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.iter().all(|line| line.contains(&*dir.path().to_string_lossy())), "{said}");
}

#[test]
fn the_folder_is_the_one_given_else_the_environments() {
    let of = |given: Option<&str>, named: &str| {
        super::folder(given.map(Path::new), Some(named.into())).map(|folder| folder.display().to_string()).ok()
    };
    assert_eq!(of(Some("a"), "b").as_deref(), Some("a"));
    assert_eq!(of(None, "b").as_deref(), Some("b"));
    assert_eq!(of(None, ""), None);
    assert!(super::folder(None, None).unwrap_err().to_string().contains("HADOOP_CONF_DIR"));
}

#[test]
fn an_address_of_no_host_is_named_with_its_file_and_what_to_write_instead() {
    let dir = folder(&[
        ("yarn-site.xml", &[("yarn.resourcemanager.webapp.address", "0.0.0.0:8089")]),
        ("mapred-site.xml", &[("mapreduce.jobhistory.address", "0.0.0.0:10020")]),
    ]);
    let (lines, notes) = made(&dir);
    assert!(lines.is_empty(), "{lines:?}");
    for said in [
        "no address of the ResourceManager (yarn.resourcemanager.webapp.address (yarn-site.xml) is 0.0.0.0:8089, which names no \
         host): [resource_manager] urls is left out; write urls = [\"http://HOST:8088\"] with its host there",
        "no address of the NameNode (dfs.namenode.http-address and fs.defaultFS are not set, and Hadoop's default names no host): \
         [name_node] urls is left out; write urls = [\"http://HOST:9870\"] with its host there",
        "(mapreduce.jobhistory.address (mapred-site.xml) is 0.0.0.0:10020, which names no host)",
    ] {
        assert!(notes.iter().any(|note| note.contains(said)), "{said}: {notes:#?}");
    }
    let dir = folder(&[(
        "yarn-site.xml",
        &[
            ("yarn.resourcemanager.ha.enabled", "true"),
            ("yarn.resourcemanager.ha.rm-ids", "rm1,rm2"),
            ("yarn.resourcemanager.hostname.rm1", "master1"),
            ("yarn.resourcemanager.webapp.address.rm2", "0.0.0.0:8088"),
        ],
    )]);
    let said =
        "of the ResourceManagers are said (yarn.resourcemanager.webapp.address.rm2 (yarn-site.xml) is 0.0.0.0:8088";
    let notes = made(&dir).1;
    assert!(notes.iter().any(|note| note.contains(said)), "{notes:#?}");
}

#[test]
fn a_folder_that_is_none_is_said_to_be_none() {
    let dir = TempDir::new().unwrap();
    let said = |name: &str| Properties::read(&dir.path().join(name)).unwrap_err().to_string();
    std::fs::write(dir.path().join("file"), "").unwrap();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    assert!(said("nowhere").ends_with("nowhere: there is no such folder"), "{}", said("nowhere"));
    assert!(said("file").contains("file: it is no folder"), "{}", said("file"));
    assert!(said("empty").contains("empty: none of core-site.xml"), "{}", said("empty"));
}
