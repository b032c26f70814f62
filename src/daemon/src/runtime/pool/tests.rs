//! Queues that are full, slow or late, jobs that panic or do not end.

use super::*;
use std::sync::mpsc;

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// One thread with so many admitted.
fn loaded(admitted: usize) -> Load {
    let load = Load::new(1, 100);
    load.admitted.store(admitted, Ordering::Release);
    load
}

#[test]
fn of_jobs_that_nobody_waits_for_the_newest_runs_and_one_place_is_enough_for_all() {
    let pool = Pool::start(&PoolOptions { threads: 1, queue: 1 }).unwrap();
    let ((open, gate), (begin, began)) = (mpsc::channel::<()>(), mpsc::channel());
    pool.run_newest(move || {
        begin.send(()).unwrap();
        let _ = gate.recv();
    });
    began.recv().unwrap(); // out of the queue is not enough: another would take its place until it runs
    let (ran, runs) = mpsc::channel();
    for number in 0..100 {
        let ran = ran.clone();
        pool.run_newest(move || ran.send(number).unwrap());
        assert_eq!(pool.queue.0.lock().jobs.len(), 1);
    }
    drop((open, ran));
    assert_eq!(runs.iter().collect::<Vec<_>>(), [99]);
    let (ran, runs) = mpsc::channel();
    pool.run_newest(move || ran.send(()).unwrap());
    assert!(runs.recv().is_ok(), "and the next has a turn again");
}

#[test]
fn a_turn_that_comes_too_late_is_given_to_who_waits_and_taken_where_nobody_does() {
    let ms = Duration::from_millis;
    let (busy, alone) = (loaded(2), loaded(1));
    assert!(busy.in_vain(ms(0), ms(100)).is_none(), "nothing is known of commits: its job says that it is late");
    for load in [&busy, &alone] {
        load.commits.add(ms(20));
    }
    let refusal = busy.in_vain(ms(19), ms(100)).expect("a commit takes longer");
    let Refusal::Unavailable { message, retry_after } = refusal else { panic!("{refusal}") };
    assert!(message.starts_with("19 ms are left after 100 ms") && message.contains("takes 20 ms"), "{message}");
    assert_eq!(retry_after, RETRY_AFTER);
    assert!(busy.in_vain(ms(20), ms(100)).is_none(), "it may just do");
    assert!(busy.in_vain(ms(19), ms(5)).is_none(), "it never waited: its time was short to begin with");
    assert!(alone.in_vain(ms(19), ms(100)).is_none(), "nobody would gain");
}

#[tokio::test]
async fn a_slow_disk_shortens_the_queue_and_not_what_is_done_for_nothing() {
    let pool = Pool::start(&PoolOptions { threads: 1, queue: 100 }).unwrap();
    pool.run(later(), |_| ()).await.unwrap();
    drop(pool.commits(Instant::now().checked_sub(Duration::from_secs(30)).unwrap()));
    let (open, gate) = mpsc::channel::<()>();
    let held = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(later(), move |_| gate.recv()).await }
    });
    let mut jobs = Vec::new();
    for before in 1..=3 {
        while pool.admitted() < before {
            tokio::task::yield_now().await;
        }
        let (pool, soon) = (pool.clone(), Instant::now() + Duration::from_secs(20));
        jobs.push(tokio::spawn(async move { pool.run(soon, |turn| turn.commits).await }));
    }
    while pool.admitted() < 4 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(NO_WAIT * 2).await;
    open.send(()).unwrap();
    held.await.unwrap().unwrap().unwrap();
    let mut found = Vec::new();
    for job in jobs {
        found.push(job.await.unwrap());
    }
    for found in &found[..2] {
        let Err(Refusal::Unavailable { message, .. }) = found else { panic!("{found:?}") };
        assert!(message.contains("others wait"), "{message}");
    }
    // Who came last has nobody behind, and is told what to leave for its commit.
    assert!(found[2].as_ref().is_ok_and(|&commits| commits >= Duration::from_secs(30)), "{found:?}");
    assert_eq!(pool.admitted(), 0, "their places were given back");
}

#[tokio::test]
async fn whose_turn_would_come_too_late_is_refused_at_once_and_who_has_time_waits() {
    let pool = Pool::start(&PoolOptions { threads: 1, queue: 100 }).unwrap();
    for _ in 0..4 {
        pool.run(later(), |_| thread::sleep(Duration::from_millis(10))).await.unwrap();
    }
    let (open, gate) = mpsc::channel::<()>();
    let first = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(later(), move |_| gate.recv()).await }
    });
    let waiting: Vec<_> = (0..9)
        .map(|_| {
            tokio::spawn({
                let pool = pool.clone();
                async move { pool.run(later(), |turn| turn.fill).await }
            })
        })
        .collect();
    while pool.admitted() < 10 {
        tokio::task::yield_now().await;
    }
    // Ten before it, of ten milliseconds each.
    let soon = Instant::now() + Duration::from_millis(40);
    let refusal = pool.run(soon, |_| ()).await.unwrap_err();
    let Refusal::Unavailable { message, retry_after } = refusal else { panic!("{refusal}") };
    assert!(message.contains("longer than the deadline") && retry_after >= RETRY_AFTER, "{message}");
    assert_eq!(pool.admitted(), 10, "its place was given back");
    let load = loaded(10);
    load.pace.add(Duration::from_millis(10));
    assert!((load.fill(Duration::from_millis(400)) - 0.5).abs() < 0.01, "a quarter of its time");
    assert!(load.fill(Duration::from_secs(60)) < 0.1);
    open.send(()).unwrap();
    assert!(first.await.unwrap().is_ok());
    for job in waiting {
        assert!(job.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_full_queue_refuses_with_a_delay_and_takes_jobs_again_afterwards() {
    let pool = Pool::start(&PoolOptions { threads: 1, queue: 2 }).unwrap();
    let (open, gate) = mpsc::channel::<()>();
    let first = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(later(), move |_| gate.recv()).await }
    });
    while pool.admitted() < 1 {
        tokio::task::yield_now().await;
    }
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            tokio::spawn({
                let pool = pool.clone();
                async move { pool.run(later(), |turn| turn.fill).await }
            })
        })
        .collect();
    while pool.admitted() < 3 {
        tokio::task::yield_now().await;
    }
    let refusal = pool.run(later(), |_| ()).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Unavailable { retry_after, .. } if retry_after > Micros::ZERO));
    open.send(()).unwrap();
    assert!(first.await.unwrap().is_ok());
    for job in waiting {
        assert!(job.await.unwrap().is_ok());
    }
    assert_eq!(pool.admitted(), 0, "every place was given back");
    assert!(pool.run(later(), |_| ()).await.is_ok());
}

#[tokio::test]
async fn a_job_that_panics_gives_its_place_back_and_is_answered() {
    let pool = Pool::start(&PoolOptions { threads: 1, queue: 0 }).unwrap();
    let found: Result<(), _> = pool.run(later(), |_| panic!("as a policy's bug would")).await;
    assert!(matches!(found, Err(Refusal::Unavailable { .. })));
    assert_eq!(pool.admitted(), 0);
    assert!(pool.run(later(), |_| ()).await.is_ok(), "its thread lives on");
}

#[tokio::test]
async fn a_job_that_goes_on_past_its_deadline_is_seen_and_one_that_waits_or_ended_is_not() {
    let pool = Pool::start(&PoolOptions { threads: 2, queue: 4 }).unwrap();
    let stuck = |pool: &Pool, after: Duration| pool.stuck_at(Instant::now() + after).stuck;
    // Each deadline is a minute away, on a machine that may halt before the job begins.
    let much_later = Duration::from_secs(120);
    assert_eq!(stuck(&pool, much_later), 0, "nothing runs");
    let hold = |pool: &Pool, deadline: Instant| {
        let (pool, (open, gate), (begin, began)) = (pool.clone(), mpsc::channel::<()>(), mpsc::channel());
        let job = move |_: JobContext| {
            let _ = begin.send(());
            let _ = gate.recv();
        };
        (open, began, tokio::spawn(async move { pool.run(deadline, job).await }))
    };
    let (first, began, one) = hold(&pool, later());
    tokio::task::spawn_blocking(move || began.recv().unwrap()).await.unwrap();
    assert_eq!(stuck(&pool, Duration::ZERO), 0, "it has its time");
    let seen = pool.stuck_at(Instant::now() + much_later);
    assert_eq!((seen, seen.all()), (StuckPlacers { stuck: 1, threads: 2 }, false));
    let (second, began, two) = hold(&pool, later());
    tokio::task::spawn_blocking(move || began.recv().unwrap()).await.unwrap();
    assert!(pool.stuck_at(Instant::now() + much_later).all());
    drop((first, second));
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    let over = Instant::now() + Duration::from_secs(30);
    while stuck(&pool, much_later) > 0 {
        assert!(Instant::now() < over, "its threads are free");
        thread::yield_now();
    }
}

#[tokio::test]
async fn its_threads_end_with_its_last_handle_and_not_before() {
    let pool = Pool::start(&PoolOptions { threads: 2, queue: 1 }).unwrap();
    let queue = Arc::downgrade(&pool.queue.0);
    let clone = pool.clone();
    drop(pool);
    assert!(clone.run(later(), |_| ()).await.is_ok());
    drop(clone);
    let deadline = Instant::now() + Duration::from_secs(30);
    while queue.strong_count() > 0 {
        assert!(Instant::now() < deadline, "its threads still hold the queue");
        thread::yield_now();
    }
}

#[test]
fn steps_shrink_with_the_queue_and_never_to_nothing() {
    let turn = |fill| JobContext { fill, commits: Duration::ZERO };
    let steps = |fill| turn(fill).steps(1_000);
    assert_eq!((steps(0.0), steps(0.5), steps(0.75)), (1_000, 1_000, 500));
    assert_eq!((steps(1.0), turn(1.0).steps(3)), (62, 1));
}
