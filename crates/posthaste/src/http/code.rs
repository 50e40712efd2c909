//! Every error code of the API, with its status and title. `docs/errors.md` says what each means and what to do.

/// Declares [`Code`] as a table: variant, word, status, title.
macro_rules! codes {
    ($($variant:ident = $word:literal, $status:literal, $title:literal;)+) => {
        /// A stable error code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the table's titles say it
        pub enum Code { $($variant,)+ }

        impl Code {
            /// Every code, by status.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// One line for people: the same for every problem of this code.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// The code that `word` spells.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

codes! {
    InvalidJson = "invalid_json", 400, "The body is not well-formed JSON";
    InvalidBody = "invalid_body", 400, "The body could not be read";
    KeyConflict = "key_conflict", 400, "Body and header name different keys";
    Unauthenticated = "unauthenticated", 401, "No valid API key was given";
    SignatureInvalid = "signature_invalid", 401, "The signature is not valid";
    Forbidden = "forbidden", 403, "The API key lacks a scope";
    NotFound = "not_found", 404, "There is no such thing";
    UnknownQueue = "unknown_queue", 404, "There is no such queue";
    UnknownEndpoint = "unknown_endpoint", 404, "There is no such endpoint";
    UnknownSource = "unknown_source", 404, "There is no such source";
    UnknownTenant = "unknown_tenant", 404, "There is no such tenant";
    MethodNotAllowed = "method_not_allowed", 405, "The method is not allowed here";
    BodyTimeout = "body_timeout", 408, "The body did not arrive in time";
    AlreadyExists = "already_exists", 409, "The id is taken";
    ManagedByFile = "managed_by_file", 409, "The configuration file defines this";
    NotAvailable = "not_available", 409, "The destination does not take part at the moment";
    StaleFence = "stale_fence", 409, "The fence is stale";
    AlreadyReported = "already_reported", 409, "The attempt was reported differently before";
    AlreadySettled = "already_settled", 409, "The job is settled";
    LeaseExpired = "lease_expired", 409, "The lease has expired";
    NotDue = "not_due", 409, "The job is not due yet";
    NotExpired = "not_expired", 409, "The lease has not expired";
    LookUpOwed = "look_up_owed", 409, "The last attempt's outcome must be looked up first";
    NotDeadLettered = "not_dead_lettered", 409, "The job is not dead-lettered";
    NotCommitted = "not_committed", 409, "The job is not committed";
    WrongState = "wrong_state", 409, "The job's state does not allow this";
    AttemptChanged = "attempt_changed", 409, "The job has moved on";
    HeldByJob = "held_by_job", 409, "The ledger entry is held by a job";
    EntryChanged = "entry_changed", 409, "The ledger entry has changed";
    OutcomeUnknown = "outcome_unknown", 409, "The effect may have happened";
    StillQuarantined = "still_quarantined", 409, "The delivery still does not fit its source";
    NoEvidence = "no_evidence", 409, "Nothing is known that would settle the job";
    TooManyRuns = "too_many_runs", 409, "Too many runs are under way";
    RunEnded = "run_ended", 409, "The run has ended";
    ArchiveNotConfigured = "archive_not_configured", 409, "No archive is configured";
    PayloadTooLarge = "payload_too_large", 413, "The payload is too large";
    BodyTooLarge = "body_too_large", 413, "The request's body is too large";
    UnsupportedEncoding = "unsupported_encoding", 415, "Compressed requests are not taken here";
    MissingKey = "missing_key", 422, "A key is required";
    InvalidName = "invalid_name", 422, "A key or id is not well-formed";
    KeyReused = "key_reused", 422, "The key was used for something else";
    UnknownField = "unknown_field", 422, "The body has a field that is not known";
    MissingField = "missing_field", 422, "The body lacks a field";
    DuplicateField = "duplicate_field", 422, "The body has a field twice";
    InvalidType = "invalid_type", 422, "A field has the wrong type";
    InvalidValue = "invalid_value", 422, "A value is out of bounds";
    InvalidDuration = "invalid_duration", 422, "A duration is not well-formed";
    NaiveTime = "naive_time", 422, "A time has no offset";
    InvalidTime = "invalid_time", 422, "A time is not well-formed";
    TimeOutOfRange = "time_out_of_range", 422, "A time is out of range";
    DueConflict = "due_conflict", 422, "`delay` and `due_at` exclude each other";
    PayloadConflict = "payload_conflict", 422, "The ways to give a payload exclude each other";
    TooManyItems = "too_many_items", 422, "The list is too long";
    UnknownParameter = "unknown_parameter", 422, "The query has a parameter that is not known";
    InvalidParameter = "invalid_parameter", 422, "A query parameter is not valid";
    InvalidConfiguration = "invalid_configuration", 422, "The configuration is not valid";
    Internal = "internal", 500, "Something is wrong on our side";
    Corrupt = "corrupt", 500, "A stored row is corrupt";
    SecretUnavailable = "secret_unavailable", 500, "A secret could not be made or opened";
    StoreUnavailable = "store_unavailable", 503, "The store is unavailable";
    ArchiveUnavailable = "archive_unavailable", 503, "The archive can't be written or read";
    Overloaded = "overloaded", 503, "More work waits than is taken on";
    Conflict = "conflict", 503, "Somebody else wrote first";
    Draining = "draining", 503, "The server is shutting down";
    SourcePaused = "source_paused", 503, "The source is paused";
    CertificateUnavailable = "certificate_unavailable", 503, "The signer's certificate can't be fetched at the moment";
    SourceUnavailable = "source_unavailable", 503, "The source can't take deliveries at the moment";
}
