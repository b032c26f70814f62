//! Streams to those who watch routes: a bounded queue each. Numbers, acknowledgements and what is kept for those who
//! come back are the engine's.

use dashmap::DashMap;
use hintd_engine::{Proof, Refusal, RouteUpdate, Shown};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;

/// Updates that a watcher may leave unread before its stream is cut.
const UNREAD_MAX: usize = 1_024;

/// All streams, by their watchers' names.
#[derive(Debug, Default)]
pub struct Watchers {
    by_name: DashMap<Arc<str>, Stream>,
}

#[derive(Debug)]
struct Stream {
    /// Distinguishes this Watch from an earlier one of the same name.
    session: u64,
    /// What who began it has shown.
    holder: Proof,
    /// Whose connection carries it, and how many pairs it watches by name.
    peer: Option<SocketAddr>,
    pairs: usize,
    queue: mpsc::Sender<Arc<RouteUpdate>>,
    /// The last number that went into the queue.
    last: u64,
    ended: Arc<OnceLock<String>>,
}

/// Who begins a Watch.
#[derive(Debug, Clone)]
pub struct WatchCaller {
    /// The name that it watches under.
    pub watcher: Arc<str>,
    /// What it has shown.
    pub proof: Proof,
    /// Whose connection it is; `None`: the daemon's own.
    pub peer: Option<SocketAddr>,
}

/// One Watch: what the stream reads.
#[derive(Debug)]
pub struct Watching {
    /// Distinguishes it from an earlier one of the same name.
    pub session: u64,
    /// Numbered updates; ends when the daemon ends the watch.
    pub updates: mpsc::Receiver<Arc<RouteUpdate>>,
    /// Why it did, in words.
    pub ended: Arc<OnceLock<String>>,
    /// It took the place of one of the same name that somebody still read.
    pub replaced: bool,
}

impl Stream {
    fn end(&self, why: &str) {
        let _ = self.ended.set(why.to_owned()); // the first reason is the one
    }
}

impl Watchers {
    /// Starts a Watch of so many named pairs with the updates it begins with; an earlier one of the same name ends.
    pub fn start(&self, caller: &WatchCaller, pairs: usize, session: u64, first: Vec<Arc<RouteUpdate>>) -> Watching {
        let WatchCaller { watcher: name, proof: holder, peer } = caller.clone();
        let (queue, updates) = mpsc::channel(UNREAD_MAX + first.len());
        let last = first.last().map_or(0, |update| update.number);
        for update in first {
            queue.try_send(update).expect("the queue was made to hold them");
        }
        let ended = Arc::new(OnceLock::new());
        let stream = Stream { session, holder, peer, pairs, queue, last, ended: Arc::clone(&ended) };
        let earlier = self.by_name.insert(name, stream);
        if let Some(earlier) = &earlier {
            earlier.end("a later Watch of the same name replaced it");
        }
        let replaced = earlier.is_some_and(|earlier| !earlier.queue.is_closed());
        Watching { session, updates, ended, replaced }
    }

    /// Whether who shows `proof` may watch under a name. `legacy`: who knows no nonces may, and may be replaced by anybody.
    ///
    /// # Errors
    /// [`Refusal::NoToken`]; [`Refusal::NotHolder`] while the stream of another is open.
    pub fn may_begin(&self, name: &str, proof: &Proof, legacy: bool) -> Result<(), Refusal> {
        if !legacy && *proof == Proof::Shown(Shown::default()) {
            return Err(Refusal::NoToken { what: format!("watcher \"{name}\"") });
        }
        self.check(name, proof, legacy)
    }

    /// Whether who shows `proof` may speak for a watcher; for one without a stream anybody may.
    ///
    /// # Errors
    /// [`Refusal::NotHolder`].
    pub fn check(&self, name: &str, proof: &Proof, legacy: bool) -> Result<(), Refusal> {
        let Some(stream) = self.by_name.get(name).filter(|stream| !stream.queue.is_closed()) else { return Ok(()) };
        let (holder, shown) = match (&stream.holder, proof) {
            (_, Proof::Trusted) => return Ok(()),
            (Proof::Trusted, Proof::Shown(_)) => (None, None),
            (Proof::Shown(holder), Proof::Shown(shown)) => (holder.nonce, shown.nonce),
        };
        let unprotected = legacy && holder.is_none() && stream.holder != Proof::Trusted;
        if unprotected || holder.is_some_and(|holder| shown == Some(holder)) {
            return Ok(());
        }
        Err(Refusal::NotHolder { watcher: name.to_owned() })
    }

    /// Sends an update. A watcher that is too far behind is cut off, and may come back for what it missed. Returns
    /// whether its stream is still there.
    pub fn send(&self, name: &str, update: Arc<RouteUpdate>) -> bool {
        let Some(mut stream) = self.by_name.get_mut(name) else { return false };
        // What was on its way when the watch began is among what the watch began with.
        if update.number <= stream.last {
            return true;
        }
        let number = update.number;
        if stream.queue.try_send(update).is_err() {
            stream.end("it left too many updates unread");
            drop(stream);
            self.by_name.remove(name);
            return false;
        }
        stream.last = number;
        true
    }

    /// The stream of this session ended by itself. Returns whether the watcher is without a stream by that, and not
    /// on that of a later Watch.
    pub fn stop(&self, name: &str, session: u64) -> bool {
        self.by_name.remove_if(name, |_, stream| stream.session == session).is_some()
    }

    /// Ends a watcher's stream, if it has one.
    pub fn end(&self, name: &str, why: &str) {
        if let Some((_, stream)) = self.by_name.remove(name) {
            stream.end(why);
        }
    }

    /// Streams, but for that of `name`.
    #[must_use]
    pub fn others(&self, name: &str) -> usize {
        self.by_name.len() - usize::from(self.by_name.contains_key(name))
    }

    /// Pairs that a peer's watchers watch by name, but for that of `name`.
    #[must_use]
    pub fn pairs_of(&self, peer: SocketAddr, name: &str) -> usize {
        let others = self.by_name.iter().filter(|stream| **stream.key() != *name && stream.peer == Some(peer));
        others.map(|stream| stream.pairs).sum()
    }

    /// Ends every Watch.
    pub fn clear(&self) {
        self.by_name.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_engine::{NonceHash, Phase, Token};

    fn update(number: u64) -> Arc<RouteUpdate> {
        Arc::new(RouteUpdate {
            number,
            snapshot: number == 1,
            routes: Vec::new(),
            removed: Vec::new(),
            rules: Vec::new(),
            phase: Phase::Initial,
            cause: "initial",
            subject: "".into(),
            untouched: 0,
            circuits: None,
        })
    }

    fn caller(watcher: &str, proof: Proof) -> WatchCaller {
        WatchCaller { watcher: watcher.into(), proof, peer: None }
    }

    #[test]
    fn pairs_are_counted_by_peer_and_go_with_their_stream() {
        let watchers = Watchers::default();
        let [near, far] = ["127.0.0.1:4000", "10.0.0.9:0"].map(|peer| peer.parse::<SocketAddr>().unwrap());
        let start = |name: &str, peer, pairs| {
            let caller = WatchCaller { peer: Some(peer), ..caller(name, Proof::default()) };
            watchers.start(&caller, pairs, 1, vec![])
        };
        let _streams = [start("a", near, 3), start("b", near, 4), start("c", far, 5)];
        assert_eq!((watchers.pairs_of(near, ""), watchers.pairs_of(far, "")), (7, 5));
        assert_eq!(watchers.pairs_of(near, "b"), 3, "those of the same name are free");
        watchers.end("a", "");
        assert_eq!(watchers.pairs_of(near, ""), 4);
    }

    fn numbers(watching: &mut Watching) -> Vec<u64> {
        std::iter::from_fn(|| watching.updates.try_recv().ok()).map(|update| update.number).collect()
    }

    #[test]
    fn what_a_watch_begins_with_comes_first_and_no_update_twice() {
        let watchers = Watchers::default();
        let mut watching = watchers.start(&caller("sdn", Proof::default()), 0, 1, vec![update(4), update(5)]);
        for number in [4, 5, 6] {
            assert!(watchers.send("sdn", update(number)));
        }
        assert_eq!(numbers(&mut watching), [4, 5, 6], "4 and 5 were on their way already");
        assert!(!watchers.send("stranger", update(1)));
    }

    #[test]
    fn a_later_watch_of_the_same_name_replaces_the_earlier_one() {
        let watchers = Watchers::default();
        let name: Arc<str> = "sdn".into();
        let mut old = watchers.start(&caller(&name, Proof::default()), 0, 1, vec![]);
        let mut new = watchers.start(&caller(&name, Proof::default()), 0, 2, vec![]);
        assert!(watchers.send("sdn", update(1)));
        assert_eq!((numbers(&mut old), numbers(&mut new)), (vec![], vec![1]));
        assert!(old.ended.get().unwrap().contains("a later Watch"));
        assert!(!old.replaced && new.replaced, "somebody read the old one");
        assert_eq!((watchers.others("sdn"), watchers.others("x")), (0, 1));
        assert!(!watchers.stop("sdn", 1), "the old stream's end does not end the new one");
        assert!(watchers.stop("sdn", 2));
        drop(watchers.start(&caller(&name, Proof::default()), 0, 3, vec![]));
        assert!(
            !watchers.start(&caller(&name, Proof::default()), 0, 4, vec![]).replaced,
            "nobody reads the old one any more"
        );
    }

    #[test]
    fn a_name_is_its_holders_while_its_stream_is_open() {
        let shown = |nonce: Option<u8>| {
            Proof::Shown(Shown { nonce: nonce.map(|byte| NonceHash([byte; 32])), ..Shown::default() })
        };
        let watchers = Watchers::default();
        let name: Arc<str> = "sdn".into();
        let held = watchers.start(&caller(&name, shown(Some(1))), 0, 1, vec![]);
        for legacy in [true, false] {
            assert_eq!(watchers.may_begin("sdn", &shown(Some(1)), legacy), Ok(()));
            for stranger in [shown(Some(2)), Proof::of_token(Token("t".into()))] {
                let taken = Err(Refusal::NotHolder { watcher: "sdn".into() });
                assert_eq!(watchers.may_begin("sdn", &stranger, legacy), taken, "{stranger:?}");
                assert_eq!(watchers.check("sdn", &stranger, legacy), taken, "{stranger:?}");
            }
            assert!(watchers.may_begin("sdn", &shown(None), legacy).is_err());
            assert_eq!(watchers.may_begin("sdn", &Proof::Trusted, legacy), Ok(()));
        }
        drop(held);
        assert_eq!(watchers.may_begin("sdn", &shown(Some(2)), true), Ok(()), "its stream is gone");
        let _old = watchers.start(&caller(&name, shown(None)), 0, 2, vec![]);
        assert_eq!(watchers.may_begin("sdn", &shown(Some(2)), true), Ok(()), "as with 0.1.0");
        assert!(watchers.may_begin("sdn", &shown(Some(2)), false).is_err());
        let _own = watchers.start(&caller(&name, Proof::Trusted), 0, 3, vec![]);
        assert!(watchers.check("sdn", &shown(None), true).is_err(), "the daemon's own");
    }

    #[test]
    fn a_watcher_that_does_not_read_is_cut_off_and_told_why() {
        let watchers = Watchers::default();
        let mut watching = watchers.start(&caller("slow", Proof::default()), 0, 1, vec![]);
        let sent = (1..).take_while(|&number| watchers.send("slow", update(number))).count();
        assert_eq!(sent, UNREAD_MAX);
        assert!(!watchers.send("slow", update(9_999)));
        assert_eq!(numbers(&mut watching).len(), UNREAD_MAX);
        assert!(matches!(watching.updates.try_recv(), Err(mpsc::error::TryRecvError::Disconnected)));
        assert_eq!(watching.ended.get().unwrap(), "it left too many updates unread");
        let silent = watchers.start(&caller("silent", Proof::default()), 0, 1, vec![]);
        watchers.end("silent", "it never acknowledged");
        assert_eq!(silent.ended.get().unwrap(), "it never acknowledged");
    }
}
