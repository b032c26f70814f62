//! Label values of the metrics: closed sets, so that series stay bounded.

/// A bounded set of label values.
pub trait LabelValue: Copy + 'static {
    /// The words on the wire.
    fn label(self) -> &'static str;
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$value_doc])* $value,)+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [$name] = &[$($name::$value,)+];
        }

        impl LabelValue for $name {
            fn label(self) -> &'static str {
                match self { $($name::$value => $word,)+ }
            }
        }
    };
}

label! {
    /// A part of a request's way.
    Stage {
        /// Waiting for a worker of the placement pool.
        Queue = "queue",
        /// The policy's run.
        Place = "place",
        /// The ledger's commit, repeats included.
        Commit = "commit",
        /// Waiting until the lease is durable.
        Journal = "journal",
        /// From arrival to answer.
        Total = "total",
    }
}

label! {
    /// What becomes of a hint.
    HintEvent {
        /// Sent with an answer.
        Issued = "issued",
        /// Kept back: it would have done no good.
        Withheld = "withheld",
        /// None: its application is held out.
        HeldOut = "held_out",
        /// None: hints made runs of its recurring job slower.
        Stopped = "stopped",
        /// YARN put the container where the hint said.
        Followed = "followed",
        /// Its lease reached its time-to-live.
        Expired = "expired",
        /// Taken back, as when YARN used the room.
        Withdrawn = "withdrawn",
    }
}

label! {
    /// What became of a feed item.
    FeedResult {
        /// Taken into the model.
        Accepted = "accepted",
        /// Seen before.
        Duplicate = "duplicate",
        /// Older than what the model has.
        Late = "late",
        /// Malformed or contradictory.
        Refused = "refused",
        /// Sound, but names what the model does not know.
        Unknown = "unknown",
        /// Left out by a bound or by precedence of another source.
        Dropped = "dropped",
    }
}

label! {
    /// What became of a reload.
    ReloadResult {
        /// The new configuration is in use.
        Applied = "applied",
        /// The file says what is in use already.
        Unchanged = "unchanged",
        /// Refused as a whole.
        Refused = "refused",
    }
}

label! {
    /// What became of a connection that was not let in as others are.
    ConnectionRefusal {
        /// Beyond the limit: its calls are refused until a permit is free.
        Standing = "standing",
        /// Far beyond the limit: closed at once.
        Closed = "closed",
        /// It never greeted: closed after the time that it had for that.
        Silent = "silent",
    }
}

label! {
    /// What became of a message that took too much memory, or too long.
    MessageRefusal {
        /// There was no memory to receive it in.
        Inbound = "inbound",
        /// It did not end in time.
        Upload = "upload",
        /// There was no memory to answer in.
        Outbound = "outbound",
        /// Answers were not read in time: their connection was closed.
        Unread = "unread",
        /// Answers were read too slowly: their connection was closed.
        Slow = "slow",
    }
}

label! {
    /// How a pair of hosts that talks gets through the network.
    RouteKind {
        /// Over a route of its own.
        Installed = "installed",
        /// By the network's default forwarding.
        Default = "default",
        /// Not at all: there is no path.
        Cut = "cut",
        /// Under a chain, through a middlebox of each of its types.
        Chained = "chained",
        /// Under a chain that fails open, past some of its middleboxes.
        Bypassing = "bypassing",
        /// Under a chain, and there is no way.
        Broken = "broken",
    }
}

label! {
    /// How a middlebox stands.
    BoxState {
        /// Flows can pass it.
        Usable = "usable",
        /// It is down, or its switch is, or the network does not have it.
        Down = "down",
    }
}

label! {
    /// Whether a link of the network carries traffic.
    LinkState {
        /// It and the switches at its ends are up.
        Up = "up",
        /// It is down, or a switch at its end is.
        Down = "down",
    }
}

label! {
    /// What becomes of moves of running containers.
    MoveEvent {
        /// An application was told.
        Proposed = "proposed",
        /// Predicted performance is a reason for one; it is told if the next round finds one as well.
        Held = "held",
        /// A container of its kind came up there.
        Followed = "followed",
    }
}

label! {
    /// How a route watcher stands.
    WatcherKind {
        /// Nothing is expected of it.
        Current = "current",
        /// An update waits for its acknowledgement.
        Waiting = "waiting",
        /// It gave none in time.
        Silent = "silent",
    }
}
