//! Reloads in the middle of load: a sound file swaps all, a wrong one nothing, and no request notices.

use crate::load::{Account, Stop, joined};
use crate::program::{Program, rewrite_config, write_config};
use hintd::wire::v1;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn reloads_under_load_swap_all_or_nothing_and_fail_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let program = Program::start(folder.path(), port).await;
    let (account, stop) = (Account::default(), Stop::default());
    let clients = account.load(&program.client, 4, 0, &stop);
    let (mut good, mut bad) = (0, 0);
    for turn in 0..12 {
        let policy = ["spread", "capacity"][turn % 2];
        let wrong = turn % 3 == 2;
        let name = if wrong { "default = \"sprad\"".to_owned() } else { format!("default = {policy:?}") };
        let before = default_policy(&program).await;
        rewrite_config(folder.path(), port, &[("policy", &name), ("limits", "answers = 190000")]);
        // The file's watcher may be faster: what counts is how it ends.
        match program.admin.clone().reload(v1::ReloadRequest {}).await {
            Ok(_) => {
                assert!(!wrong);
                good += 1;
                assert_eq!(default_policy(&program).await, policy);
            }
            Err(status) => {
                assert!(wrong && status.message().contains("sprad"), "{status:?}");
                bad += 1;
                assert_eq!(default_policy(&program).await, before, "a wrong file changes nothing");
            }
        }
        program.signal("-HUP");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.set();
    joined(clients).await;
    let (answered, unanswered) = account.counts();
    assert_eq!((good, bad, unanswered), (8, 4, 0), "no request failed");
    assert!(answered > 20, "there was load: {answered}");
    account.check(&program, 0).await;
}

async fn default_policy(program: &Program) -> String {
    program.admin.clone().list_policies(v1::ListPoliciesRequest {}).await.unwrap().into_inner().default_policy
}
