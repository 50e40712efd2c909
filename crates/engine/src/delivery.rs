//! One delivery: signed at send time, sent once, classified, reported. Rows D1, D3, B4.

use std::{sync::Arc, time::Duration};

use posthaste_core::{
    Class, Command, Details, DurationMs, Effect, Evidence, Failure, FinishOutcome, Policy, RetryWish, Ruled,
    Timestamp, limits, parse_retry_after,
};
use posthaste_store::{JobCommand, LeasedJob, StoreError};

use crate::{
    Engine,
    config::Endpoint,
    dispatch::Slot,
    ports::{Answered, OutboundRequest, SendLimits, SendOutcome},
    slots::SLOW_AFTER,
};

/// How often a report is tried again while the store is unavailable, before the lease is left to expire.
const REPORT_TRIES: u32 = 8;

/// The first wait between two tries to report.
const REPORT_PAUSE: DurationMs = DurationMs(100);

/// What became of a send, as the core wants it.
struct Conclusion {
    command: Command,
    hold_lane_until: Option<Timestamp>,
}

impl Engine {
    /// Sends one leased job and reports how it went. Cancel: dropping it leaves the lease to expire.
    pub(crate) async fn deliver(self: &Arc<Self>, endpoint: &Endpoint, leased: LeasedJob, mut slot: Slot) {
        if leased.job.state.name() == posthaste_core::StateName::Leased
            && endpoint.policy.on_unknown != posthaste_core::OnUnknown::Retry
        {
            let start = Command::Start { fence: leased.fence };
            if !self.report_delivery(endpoint, &leased, start, None).await {
                return;
            }
        }
        let begun = self.clock.now();
        let request = self.outbound(endpoint, &leased, begun);
        let outcome = self.send(request, begun, &mut slot).await;
        #[cfg(feature = "faults")]
        if matches!(outcome, SendOutcome::Answered(_)) {
            posthaste_store::faults::reached(posthaste_store::faults::Point::AfterSend);
        }
        let ended = self.clock.now();
        if asks(&outcome, DISABLE) {
            // Before the report, so that nothing more is sent; a crash in between leaves the lease to expire.
            let reason = "the receiver asked for it (webhook-delivery: disable)";
            self.disable_endpoint(endpoint.tenant, &endpoint.id, reason).await;
        }
        let conclusion = conclude(&endpoint.policy, &leased, outcome, (begun, ended));
        let held = conclusion.hold_lane_until;
        self.report_delivery(endpoint, &leased, conclusion.command, held).await;
        if held.is_some() {
            self.dispatcher.start_over((endpoint.tenant, endpoint.lane));
        }
        drop(slot);
    }

    /// Sends, and tells the slot how long that takes.
    async fn send(&self, request: OutboundRequest, begun: Timestamp, slot: &mut Slot) -> SendOutcome {
        let mut sending = self.sender.send(request);
        let mut slow = self.clock.sleep_until(begun.after(SLOW_AFTER));
        let mut slow_told = false;
        loop {
            tokio::select! {
                biased;
                outcome = &mut sending => {
                    if matches!(outcome, SendOutcome::Answered(_)) {
                        slot.answered();
                    }
                    return outcome;
                }
                () = self.dispatcher.abort.cancelled() => return SendOutcome::Unanswered {
                    fault: posthaste_core::TransportFault::Timeout,
                    sent: true,
                    detail: "cut off by the server's shutdown".to_owned(),
                },
                () = &mut slow, if !slow_told => {
                    slow_told = true;
                    slot.turned_slow();
                }
            }
        }
    }

    fn outbound(&self, endpoint: &Endpoint, leased: &LeasedJob, now: Timestamp) -> OutboundRequest {
        let message = &leased.message;
        let webhook_id =
            leased.wire_id.as_deref().map_or_else(|| leased.job.id.to_string(), ToOwned::to_owned);
        let timestamp = now.0.div_euclid(1_000);
        let mut headers: Vec<(String, Vec<u8>)> = Vec::with_capacity(10 + endpoint.headers.len());
        let mut add = |name: &str, value: String| headers.push((name.to_owned(), value.into_bytes()));
        let content_type = message.content_type.as_deref().unwrap_or("application/json");
        add("content-type", content_type.to_owned());
        add("user-agent", self.settings.user_agent.to_string());
        add("webhook-timestamp", timestamp.to_string());
        if let Some(signer) = &endpoint.signer {
            add("webhook-signature", signer.sign(&webhook_id, timestamp, &message.payload));
        }
        add("webhook-id", webhook_id);
        add("idempotency-key", format!("{}:{}", message.key, endpoint.id));
        let attempt = leased.job.attempt.map_or(0, posthaste_core::Attempt::get);
        add("posthaste-attempt", attempt.to_string());
        if let Some(encoding) = content_encoding(message.headers.as_deref()) {
            add("content-encoding", encoding);
        }
        if let Some(event_type) = &message.event_type {
            add("posthaste-event-type", event_type.to_string());
        }
        if let Some(traceparent) = &message.traceparent {
            add("traceparent", traceparent.to_string());
        }
        for (name, value) in &endpoint.headers {
            add(name, value.clone());
        }
        OutboundRequest {
            url: endpoint.url.clone(),
            method: "POST",
            headers,
            body: message.payload.clone(),
            limits: send_limits(endpoint.timeout),
        }
    }

    /// Reports until the store has it, the lease's end makes it pointless, or we stop. True if it was taken.
    async fn report_delivery(
        &self,
        endpoint: &Endpoint,
        leased: &LeasedJob,
        command: Command,
        hold_lane_until: Option<Timestamp>,
    ) -> bool {
        let mut pause = REPORT_PAUSE;
        for _ in 0..REPORT_TRIES {
            let report = JobCommand {
                tenant: leased.job.tenant,
                job: leased.job.id,
                command: command.clone(),
                policy: Arc::clone(&endpoint.policy),
                hold_lane_until,
                actor: Some(self.settings.node.clone()),
            };
            match self.apply(vec![report]).await {
                Ok(applied) => {
                    let outcome = applied.into_iter().next().map(|applied| applied.outcome);
                    return matches!(
                        outcome,
                        Some(posthaste_store::AppliedOutcome::Decided { reply: Ok(_), .. })
                    );
                }
                Err(StoreError::Corrupt(error)) => {
                    tracing::error!(event = "corrupt", job = %leased.job.id, error = %error);
                    return false;
                }
                Err(error) => {
                    tracing::warn!(event = "report_failed", job = %leased.job.id, error = %error);
                    self.clock.sleep_until(self.clock.now().after(pause)).await;
                    pause = pause.plus(pause);
                }
            }
        }
        false
    }
}

/// `webhook-delivery: disable`: nothing more is to be sent to this endpoint.
const DISABLE: &[u8] = b"disable";

/// `webhook-delivery: abort-message`: this message is not to be sent again.
const ABORT_MESSAGE: &[u8] = b"abort-message";

/// Whether the answer's `webhook-delivery` says `word`.
fn asks(outcome: &SendOutcome, word: &[u8]) -> bool {
    match outcome {
        SendOutcome::Answered(answered) => controls(answered, word),
        SendOutcome::Blocked { .. } | SendOutcome::Unanswered { .. } => false,
    }
}

fn controls(answered: &Answered, word: &[u8]) -> bool {
    answered.delivery_control.as_deref().is_some_and(|said| said.trim_ascii().eq_ignore_ascii_case(word))
}

/// How the payload is compressed, if it came in so: the bytes go out as they came.
fn content_encoding(headers: Option<&str>) -> Option<String> {
    let headers = headers.filter(|text| text.contains("content-encoding"))?;
    let headers: serde_json::Map<String, serde_json::Value> = serde_json::from_str(headers).ok()?;
    Some(headers.get("content-encoding")?.as_str()?.to_owned())
}

/// The phases of a request within its endpoint's time-out.
pub(crate) fn send_limits(total: Duration) -> SendLimits {
    SendLimits {
        connect_timeout: total.min(Duration::from_secs(10)),
        tls_timeout: total.min(Duration::from_secs(10)),
        first_byte_timeout: total,
        total_timeout: total,
        excerpt_bytes_max: limits::EXCERPT_BYTES_MAX,
    }
}

fn conclude(
    policy: &Policy,
    leased: &LeasedJob,
    outcome: SendOutcome,
    (begun, ended): (Timestamp, Timestamp),
) -> Conclusion {
    let duration = Some(ended.since(begun));
    let fence = leased.fence;
    match outcome {
        SendOutcome::Answered(answered) => conclude_answer(policy, leased, &answered, duration, ended),
        SendOutcome::Blocked { reason } => {
            let failure = Failure::ruled(policy.rule_class(Class::Blocked), None);
            let details = Details { duration, message: Some(kept(&reason)), ..Details::default() };
            Conclusion { command: Command::Fail { fence, failure, details }, hold_lane_until: None }
        }
        SendOutcome::Unanswered { fault, sent, detail } => {
            let failure = Failure::ruled(policy.rule_fault(fault, sent), None);
            let details = Details { duration, message: Some(kept(&detail)), ..Details::default() };
            Conclusion { command: Command::Fail { fence, failure, details }, hold_lane_until: None }
        }
    }
}

fn conclude_answer(
    policy: &Policy,
    leased: &LeasedJob,
    answered: &Answered,
    duration: Option<DurationMs>,
    now: Timestamp,
) -> Conclusion {
    let fence = leased.fence;
    let retry_after = answered.retry_after.as_deref().and_then(|value| parse_retry_after(value, now));
    let details = Details {
        status: Some(answered.status),
        duration,
        message: redirected_to(answered),
        excerpt: (!answered.excerpt.is_empty()).then(|| answered.excerpt.as_ref().into()),
        ..Details::default()
    };
    let ledger = answered.ledger.as_deref().and_then(read_ledger);
    match policy.rule_status(answered.status, retry_after.is_some()) {
        Ruled::Accepted => {
            let (outcome, evidence) = ledger.unwrap_or((FinishOutcome::Committed, Evidence::Answered));
            let reason = (outcome == FinishOutcome::Cancelled)
                .then(|| "the receiver's ledger says that it no longer applies".into());
            let command = Command::Finish { fence, outcome, evidence, reason, details };
            Conclusion { command, hold_lane_until: None }
        }
        Ruled::Failed(ruling) => {
            // What a receiver says about its own load holds for all that goes to it.
            let held = matches!(ruling.classified.class, Class::Throttled | Class::ServerError);
            let hold_lane_until =
                retry_after.filter(|after| held && *after > DurationMs::ZERO).map(|after| now.after(after));
            let mut failure = Failure::ruled(ruling, retry_after);
            if controls(answered, ABORT_MESSAGE) {
                failure.wish = RetryWish::No;
            }
            debug_assert!(failure.effect <= Effect::Possible, "no failure reports an effect");
            Conclusion { command: Command::Fail { fence, failure, details }, hold_lane_until }
        }
    }
}

/// Where a redirect would have led, for its owner: it is never followed, and what may be secret is left out.
fn redirected_to(answered: &Answered) -> Option<Box<str>> {
    if !(300..400).contains(&answered.status) {
        return None;
    }
    let Some(location) = answered.location.as_deref() else {
        return Some("a redirect without a Location; redirects are not followed".into());
    };
    let text = String::from_utf8_lossy(location);
    let shown: String = text.chars().filter(|c| !c.is_control()).collect();
    let (shown, cut) = shown.split_once(['?', '#']).map_or((&*shown, ""), |(before, _)| (before, "?…"));
    // Userinfo may be a password.
    let shown = match shown.split_once("//") {
        Some((scheme, rest)) => {
            let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}//{host}{path}")
        }
        None => shown.to_owned(),
    };
    Some(kept(&format!("points to {shown}{cut}; redirects are not followed")))
}

/// Reads `posthaste-ledger: path=duplicate_done, outcome=committed, attempt=1`.
fn read_ledger(value: &[u8]) -> Option<(FinishOutcome, Evidence)> {
    let text = std::str::from_utf8(value).ok()?;
    let field = |name: &str| {
        text.split(',').find_map(|part| {
            let (key, value) = part.split_once('=')?;
            (key.trim() == name).then(|| value.trim())
        })
    };
    let outcome = match (field("outcome")?, field("path")) {
        ("cancelled", _) => FinishOutcome::Cancelled,
        ("committed", Some("duplicate_done")) => FinishOutcome::Duplicate,
        ("committed", _) => FinishOutcome::Committed,
        _ => return None,
    };
    Some((outcome, Evidence::Ledger))
}

/// As much of an error's text as is kept.
pub(crate) fn kept(text: &str) -> Box<str> {
    let mut end = text.len().min(limits::ERROR_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receivers_ledger_header_is_read_or_ignored() {
        use FinishOutcome::*;
        let check = |text: &str, outcome: Option<FinishOutcome>| {
            let expected = outcome.map(|outcome| (outcome, Evidence::Ledger));
            assert_eq!(expected, read_ledger(text.as_bytes()), "{text}");
        };
        check("path=first_run, outcome=committed, attempt=1", Some(Committed));
        check("path=duplicate_done, outcome=committed, attempt=1", Some(Duplicate));
        check("outcome=cancelled", Some(Cancelled));
        check(" outcome = committed ", Some(Committed));
        for text in ["", "outcome", "outcome=", "outcome=done", "path=first_run", "committed", "\u{7f}"] {
            check(text, None);
        }
        assert_eq!(None, read_ledger(b"outcome=\xff"));
    }

    #[test]
    fn case_b20_a_redirect_is_shown_without_what_may_be_secret() {
        let shown = |status, location: Option<&str>| {
            let answered = Answered {
                status,
                retry_after: None,
                location: location.map(|text| text.as_bytes().to_vec()),
                ledger: None,
                delivery_control: None,
                excerpt: bytes::Bytes::new(),
                excerpt_truncated: false,
                peer: None,
            };
            redirected_to(&answered).map(String::from)
        };
        let points = |to: &str| Some(format!("points to {to}; redirects are not followed"));
        assert_eq!(points("https://x.example/final"), shown(301, Some("https://x.example/final")));
        assert_eq!(points("https://x.example/a?…"), shown(302, Some("https://me:pw@x.example/a?token=1#b")));
        assert_eq!(points("//other.test/"), shown(307, Some("//other.test/")));
        assert_eq!(points("/final?…"), shown(308, Some("/final?x=1")));
        assert!(shown(304, None).unwrap().contains("without a Location"));
        assert_eq!(None, shown(200, Some("/final")));
    }

    #[test]
    fn r_a3_what_describes_the_bytes_is_sent_on_with_them() {
        let gzip = Some("gzip".to_owned());
        assert_eq!(gzip, content_encoding(Some(r#"{"content-encoding":"gzip","user-agent":"x"}"#)));
        for headers in [
            None,
            Some("{}"),
            Some(r#"{"user-agent":"content-encoding"}"#),
            Some("no JSON: content-encoding"),
        ] {
            assert_eq!(None, content_encoding(headers), "{headers:?}");
        }
    }

    #[test]
    fn error_texts_are_cut_between_characters() {
        let long = "é".repeat(limits::ERROR_TEXT_BYTES_MAX);
        let cut = kept(&long);
        assert!(cut.len() <= limits::ERROR_TEXT_BYTES_MAX && cut.chars().all(|c| c == 'é'));
    }
}
