//! The words of the ledger, spelt as in its table.

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$what])* $variant,)+
        }

        impl $name {
            /// As it is spelt in the table, in logs and on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The word that is spelt so.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Where an entry stands.
    Status {
        /// Somebody holds a grant, which may have run out.
        InProgress = "in_progress",
        /// The effect surely did not happen; the next claim may try.
        Failed = "failed",
        /// It happened, or surely never will. Final.
        Done = "done",
    }
}

words! {
    /// What a claim was told.
    Path {
        /// Nobody was granted the key before.
        FirstRun = "first_run",
        /// A grant before this one failed or ran out.
        RetryAfterFailure = "retry_after_failure",
        /// It is done: the stored answer is given again.
        DuplicateDone = "duplicate_done",
        /// Somebody else is at it. Never answered 2xx.
        InProgressElsewhere = "in_progress_elsewhere",
    }
}

words! {
    /// What "done" means.
    Outcome {
        /// The effect happened.
        Committed = "committed",
        /// It no longer applied.
        Cancelled = "cancelled",
    }
}

words! {
    /// What a grant follows.
    Previous {
        /// Nothing: the key is new.
        None = "none",
        /// A failure that surely had no effect.
        Failed = "failed",
        /// A grant that ran out. Its effect rolls back if it comes late; what it did outside the database may stand.
        Expired = "expired",
    }
}

words! {
    /// What becomes of a grant that runs out.
    OnExpired {
        /// The next claim takes it over.
        Retake = "retake",
        /// It is held until a person or a look-up ends it by a reset.
        Hold = "hold",
    }
}
