//! Several daemons by name: which one answers, by flags, environment and contexts, and what is said of a file that is none.

use super::{Files, command, started, stderr, stdout, text_of};
use serde_json::Value;
use std::process::Output;

/// Calls with contexts of their own.
struct User {
    files: Files,
}

impl User {
    fn call(&self, environment: &[(&str, &str)], args: &[&str]) -> Output {
        let mut command = command(args);
        command.env("XDG_CONFIG_HOME", self.files.path("config")).envs(environment.iter().copied()).output().unwrap()
    }

    fn done(&self, args: &[&str]) -> String {
        let output = self.call(&[], args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        stdout(&output)
    }

    /// The life of the daemon that answers.
    fn instance(&self, environment: &[(&str, &str)], args: &[&str]) -> String {
        let output = self.call(environment, &[&["--json"], args, &["status", "--live"]].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["instance_id"].as_str().unwrap().to_owned()
    }

    fn refused(&self, args: &[&str], words: &[&str]) {
        let output = self.call(&[], args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{args:?}: {words:?}: {said}");
    }
}

#[test]
fn the_daemon_that_is_meant_answers_whoever_says_which() {
    let (one, two) = (Files::new(), Files::new());
    let (runtime, first, first_socket) = started(&one, "");
    let (other_runtime, second, second_socket) = started(&two, "");
    let user = User { files: Files::new() };
    let of = |socket: &str| user.instance(&[], &["--admin-socket", socket]);
    let (a, b) = (of(&first_socket), of(&second_socket));
    assert_ne!(a, b);
    user.done(&["context", "add", "a", "--admin-socket", &first_socket]);
    user.done(&["context", "add", "b", "--admin-socket", &second_socket, "--address", &second.grpc.to_string()]);
    assert_eq!(user.instance(&[], &["--context", "a"]), a);
    assert_eq!(user.instance(&[("HINTD_CONTEXT", "b")], &[]), b);
    user.done(&["context", "use", "a"]);
    let seen = [
        user.instance(&[], &[]),
        user.instance(&[("HINTD_CONTEXT", "b")], &[]),
        user.instance(&[("HINTD_ADMIN_SOCKET", &second_socket)], &[]),
        // Who names a context on the command line means it.
        user.instance(&[("HINTD_ADMIN_SOCKET", &second_socket)], &["--context", "a"]),
        user.instance(&[], &["--context", "a", "--admin-socket", &second_socket]),
    ];
    assert_eq!(seen, [&a, &b, &b, &a, &b].map(Clone::clone));
    let listed = user.done(&["context", "list"]);
    assert!(listed.lines().any(|line| line.starts_with("*  a ")) && listed.contains(&second_socket), "{listed}");
    // A context that does not say where its daemon would be reached is not answered for by another daemon.
    user.done(&["context", "add", "far", "--address", "127.0.0.1:1"]);
    let here_only = &["context far has no admin socket", "on the same machine only", "(ssh)", "--admin-socket"];
    user.refused(&["--context", "far", "status"], here_only);
    assert_eq!(user.done(&["context", "rename", "far", "farther"]), "context far is farther now\n");
    user.refused(&["context", "rename", "far", "b"], &["no context \"far\"", "it has a, b, farther"]);
    user.refused(&["context", "rename", "farther", "b"], &["a context b already"]);
    user.refused(&["context", "rename", "farther", "a b"], &["\"a b\"", "1 to 64 letters"]);
    user.done(&["context", "rename", "a", "first"]);
    assert_eq!(user.done(&["context", "current"]), "first\n", "it stays the current one");
    user.done(&["context", "rename", "first", "a"]);
    user.done(&["context", "rename", "farther", "far"]);
    user.refused(&["--context", "a", "replicas", "/x"], &["context a", "--address"]);
    user.refused(&["--context", "c", "status"], &["no context \"c\"", "it has a, b, far"]);
    user.refused(&["context", "use", "c"], &["no context \"c\""]);
    user.refused(&["context", "add", "a", "--address", "x:1"], &["--force"]);
    user.refused(&["context", "add", "x"], &["--address", "--admin-socket"]);
    user.refused(&["context", "add", "x", "--secret-file", "s"], &["--address", "--admin-socket"]);
    user.refused(&["context", "add", "x", "--address", ""], &["\"\" is no HOST:PORT"]);
    user.refused(&["context", "add", "x", "--address", "notanaddress"], &["notanaddress", "HOST:PORT"]);
    user.refused(&["--context", "nope", "context", "list"], &["--context nope", "asks no daemon"]);
    // Half of what is asked by is another daemon's: nobody is asked.
    user.done(&["context", "use", "b"]);
    for (environment, args, by) in [
        (&[("HINTD_ADDRESS", "lab:8470")][..], &["status"][..], "HINTD_ADDRESS is lab:8470"),
        (&[("HINTD_ADMIN_SOCKET", &*first_socket)][..], &["replicas", "/x"][..], "HINTD_ADMIN_SOCKET is "),
        (&[][..], &["--admin-socket", &first_socket, "replicas", "/x"][..], "--admin-socket is "),
    ] {
        let output = user.call(environment, args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(by) && said.contains("context b") && said.contains("--context"), "{args:?}: {said}");
    }
    let address = second.grpc.to_string();
    assert_eq!(user.instance(&[("HINTD_ADDRESS", &address)], &[]), b, "it is the context's own address");
    user.done(&["context", "use", "a"]);
    assert!(user.done(&["context", "remove", "a"]).contains("none is current now"));
    let left: Value = serde_json::from_str(&user.done(&["--json", "context", "list"])).unwrap();
    let names: Vec<&str> =
        left["contexts"].as_array().unwrap().iter().map(|context| context["name"].as_str().unwrap()).collect();
    assert_eq!((names, &left["current"]), (vec!["b", "far"], &Value::Null));
    runtime.block_on(first.shutdown()).unwrap();
    other_runtime.block_on(second.shutdown()).unwrap();
}

#[test]
fn a_file_that_is_none_is_named_with_its_line_by_who_needs_it_and_by_nobody_else() {
    let user = User { files: Files::new() };
    std::fs::create_dir_all(user.files.path("config/hintd")).unwrap();
    let file = user.files.write("config/hintd/contexts.toml", "current = \"a\"\n[contexts.a]\nadress = \"x\"\n");
    for args in [&["status"][..], &["context", "list"], &["--context", "a", "status"], &["request", "-f", "x.json"]] {
        let output = user.call(&[], args);
        let said = stderr(&output);
        let named = said.contains(&file) && said.contains("line 3") && said.contains("adress");
        assert!(named || args[0] == "request" && said.contains("x.json"), "{args:?}: {said}");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    }
    std::fs::write(&file, "current = \"gone\"\n\n[contexts.a]\n").unwrap();
    user.refused(&["status"], &[&file, "no context \"gone\"", "context use"]);
    let listed = user.call(&[], &["context", "list"]);
    assert!(listed.status.success() && stderr(&listed).contains("\"gone\""), "{}", stderr(&listed));
    // Who says where the daemon is needs no contexts, and who asks no daemon either.
    let nobody = user.call(&[], &["--admin-socket", "/nonexistent", "status"]);
    assert_eq!(nobody.status.code(), Some(1), "{}", stderr(&nobody));
    let network = text_of(&user.files.path("n.json"));
    user.done(&["topology", "build", "fat-tree", "--ports", "4", "-o", &network]);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 3, "nobody wrote to it");
}
