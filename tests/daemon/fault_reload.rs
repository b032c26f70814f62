//! Reloads in the middle of load: a sound file swaps all, a wrong one nothing, and no request notices.

use crate::load::{Account, Stop, joined};
use crate::program::{Program, rewrite_config, write_config};
use crate::world::SOON;
use hintd_client::wire::v1;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn reloads_under_load_swap_all_or_nothing_and_fail_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let port = write_config(folder.path());
    let program = Program::start(folder.path(), port).await;
    let (account, stop) = (Account::default(), Stop::default());
    // What counts is that nobody is refused, not how soon a machine that others use answers.
    let clients = account.load_within(6 * SOON, &program.client, 4, 0, &stop);
    let (mut good, mut bad) = (0, 0);
    for turn in 0..12 {
        let policy = ["spread", "capacity"][turn % 2];
        let wrong = turn % 3 == 2;
        let name = if wrong { "default = \"sprad\"".to_owned() } else { format!("default = {policy:?}") };
        let (before, load) = (default_policy(&program).await, account.counts().0);
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
        more_answered(&account, load + 2).await;
    }
    stop.set();
    joined(clients).await;
    let (answered, unanswered) = account.counts();
    assert_eq!((good, bad, unanswered), (8, 4, 0), "no request failed");
    assert!(answered >= 24, "there was load: {answered}");
    account.check(&program, 0).await;
}

/// Waits until so many were answered: there is load in each turn.
async fn more_answered(account: &Account, least: usize) {
    let began = Instant::now();
    while account.counts().0 < least {
        assert!(began.elapsed() < 6 * SOON, "{least} are to be answered: {:?}", account.counts());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn default_policy(program: &Program) -> String {
    program.admin.clone().list_policies(v1::ListPoliciesRequest {}).await.unwrap().into_inner().default_policy
}
