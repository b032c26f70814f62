//! Who watches routes: each watcher's numbered updates, and which it acknowledged.

use crate::engine::Refusal;
use dashmap::DashMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Updates that a watcher may leave unread before its stream is cut.
const UNREAD_MAX: usize = 1_024;

/// All watchers by name. `U` is an update without its number.
#[derive(Debug)]
pub struct Watchers<U> {
    by_name: DashMap<Arc<str>, Watcher<U>>,
}

#[derive(Debug)]
struct Watcher<U> {
    /// Distinguishes this Watch from an earlier one of the same name.
    session: u64,
    queue: mpsc::Sender<(u64, U)>,
    sent: u64,
    acknowledged: u64,
}

/// One Watch: what the stream reads.
#[derive(Debug)]
pub struct Watching<U> {
    /// Distinguishes it from an earlier one of the same name.
    pub session: u64,
    /// Numbered updates; ends when the watcher was replaced or fell too far behind.
    pub updates: mpsc::Receiver<(u64, U)>,
}

impl<U> Default for Watchers<U> {
    fn default() -> Self {
        Self { by_name: DashMap::new() }
    }
}

impl<U> Watchers<U> {
    /// Starts a Watch; an earlier one of the same name ends.
    pub fn start(&self, name: &Arc<str>) -> Watching<U> {
        let (queue, updates) = mpsc::channel(UNREAD_MAX);
        let mut entry = self.by_name.entry(Arc::clone(name)).or_insert_with(|| Watcher {
            session: 0,
            queue: queue.clone(),
            sent: 0,
            acknowledged: 0,
        });
        let watcher = entry.value_mut();
        let session = watcher.session + 1;
        *watcher = Watcher { session, queue, sent: 0, acknowledged: 0 };
        Watching { session, updates }
    }

    /// Sends an update. A watcher that is gone or too far behind is dropped: its stream ends, and it
    /// watches again from a snapshot. Returns whether it is still there.
    pub fn send(&self, name: &str, update: U) -> bool {
        let Some(mut watcher) = self.by_name.get_mut(name) else { return false };
        let number = watcher.sent + 1;
        if watcher.queue.try_send((number, update)).is_err() {
            drop(watcher);
            self.by_name.remove(name);
            return false;
        }
        watcher.sent = number;
        true
    }

    /// The stream of this session ended. Returns whether the watcher is gone by that (and not
    /// replaced by a later Watch).
    pub fn stop(&self, name: &str, session: u64) -> bool {
        self.by_name.remove_if(name, |_, watcher| watcher.session == session).is_some()
    }

    /// Takes an acknowledgement of every update up to `number`; returns how many are outstanding.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a stranger; [`Refusal::Invalid`] for a number that was not sent or
    /// was acknowledged already.
    pub fn acknowledge(&self, name: &str, number: u64) -> Result<u64, Refusal> {
        let Some(mut watcher) = self.by_name.get_mut(name) else {
            return Err(Refusal::Unknown { what: "watcher", name: name.to_owned(), nearest: None });
        };
        let invalid = |message| Err(Refusal::Invalid { field: "number".to_owned(), message });
        if number == 0 || number > watcher.sent {
            return invalid(format!("update {number} was not sent to \"{name}\"; the last was {}", watcher.sent));
        }
        if number <= watcher.acknowledged {
            return invalid(format!("update {number} of \"{name}\" is acknowledged already"));
        }
        watcher.acknowledged = number;
        Ok(watcher.sent - number)
    }

    /// Ends the Watch of a name.
    pub fn end(&self, name: &str) {
        self.by_name.remove(name);
    }

    /// Ends every Watch.
    pub fn clear(&self) {
        self.by_name.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_numbered_and_acknowledged_once() {
        let watchers = Watchers::default();
        let name: Arc<str> = "sdn".into();
        let mut watching = watchers.start(&name);
        assert!(watchers.send("sdn", 'a') && watchers.send("sdn", 'b'));
        assert_eq!(watching.updates.try_recv().unwrap(), (1, 'a'));
        assert_eq!(watchers.acknowledge("sdn", 1), Ok(1));
        assert_eq!(watchers.acknowledge("sdn", 2), Ok(0));
        for (number, said) in [(2, "already"), (1, "already"), (3, "was not sent"), (0, "was not sent")] {
            let refusal = watchers.acknowledge("sdn", number).unwrap_err();
            assert!(refusal.to_string().contains(said), "{number}: {refusal}");
        }
        let refusal = watchers.acknowledge("stranger", 1).unwrap_err();
        assert_eq!(refusal.to_string(), "watcher \"stranger\" is unknown");
    }

    #[test]
    fn a_later_watch_of_the_same_name_replaces_the_earlier_one() {
        let watchers = Watchers::default();
        let name: Arc<str> = "sdn".into();
        let mut old = watchers.start(&name);
        let mut new = watchers.start(&name);
        assert!(watchers.send("sdn", 'a'));
        assert!(old.updates.try_recv().is_err());
        assert_eq!(new.updates.try_recv().unwrap(), (1, 'a'), "numbers start anew");
        assert!(!watchers.stop("sdn", old.session), "the old stream's end does not end the new one");
        assert!(watchers.stop("sdn", new.session));
    }

    #[test]
    fn a_watcher_that_does_not_read_is_cut_off() {
        let watchers = Watchers::default();
        let mut watching = watchers.start(&"slow".into());
        let sent = (0..=UNREAD_MAX).take_while(|_| watchers.send("slow", ())).count();
        assert_eq!(sent, UNREAD_MAX);
        assert!(!watchers.send("slow", ()));
        while watching.updates.try_recv().is_ok() {}
        assert!(matches!(watching.updates.try_recv(), Err(mpsc::error::TryRecvError::Disconnected)));
    }
}
