//! `verify`: checks signatures. `--ndjson` answers a line a request; without it, one request is explained to a person.

use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
use posthaste_receiver::{OnceError, Reason, Request, verify_once};
use serde::Deserialize;
use serde_json::json;

use super::{
    exit::{Failure, Outcome},
    output::{self, BAD, FAINT, GOOD, styled},
    times,
};

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Read requests from standard input, one JSON object a line; answer a line each
    #[arg(long, conflicts_with_all = ["scheme", "secret", "header", "body"])]
    ndjson: bool,
    /// Who signs, and how: stripe, github, standard_webhooks, …
    #[arg(long, value_name = "NAME", required_unless_present = "ndjson")]
    scheme: Option<String>,
    /// A secret: env:NAME, file:PATH, or the secret itself; may be given several times
    #[arg(long, value_name = "SECRET")]
    secret: Vec<String>,
    /// A header as it came; may be given several times
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The body: @FILE, - for standard input, or the text itself
    #[arg(long, value_name = "BODY", default_value = "")]
    body: String,
    /// The method
    #[arg(long, default_value = "POST")]
    method: String,
    /// The URL as the sender knows it; some schemes sign it
    #[arg(long, value_name = "URL", default_value = "")]
    url: String,
    /// The time of arrival in Unix seconds; now unless told
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    now: Option<i64>,
    /// How old a signed time may be, in seconds; the scheme's own unless told
    #[arg(long, value_name = "SECONDS")]
    tolerance: Option<u64>,
    /// A setting of the scheme, such as header=X-Signature; file:PATH is read; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
}

/// A request as it is read from a line. Other members, such as a vector's expectation, are left aside.
#[derive(Deserialize)]
struct Line {
    scheme: String,
    secrets: Vec<String>,
    #[serde(default = "post")]
    method: String,
    #[serde(default)]
    url: String,
    headers: Vec<(String, String)>,
    #[serde(default)]
    body_base64: String,
    now_unix: Option<i64>,
    tolerance_seconds: Option<u64>,
    config: Option<BTreeMap<String, serde_json::Value>>,
}

fn post() -> String {
    "POST".to_owned()
}

pub(super) fn run(args: &VerifyArgs) -> Result<Outcome, Failure> {
    if args.ndjson { every_line() } else { explain(args) }
}

/// A verdict a line, in order, each written before the next line is read.
fn every_line() -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Done;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line =
            line.map_err(|error| Failure::refused(format!("standard input can't be read: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let verdict =
            match serde_json::from_str::<Line>(&line).map_err(|error| error.to_string()).and_then(Once::of) {
                Ok(once) => once.verify().map(|_| ()),
                Err(problem) => {
                    outcome = Outcome::Refused;
                    Err(Verdict { reason: "unreadable_request", detail: problem })
                }
            };
        let answer = match verdict {
            Ok(()) => json!({ "result": "valid" }),
            Err(verdict) => {
                json!({ "result": "invalid", "reason": verdict.reason, "detail": verdict.detail })
            }
        };
        let written = writeln!(out, "{answer}").and_then(|()| out.flush());
        written.map_err(|error| Failure::refused(format!("standard output can't be written to: {error}")))?;
    }
    Ok(outcome)
}

/// A request to be verified once.
struct Once {
    line: Line,
    body: Vec<u8>,
    now_unix: i64,
}

/// Why a request was not accepted.
struct Verdict {
    reason: &'static str,
    detail: String,
}

/// What a fitting signature tells.
#[derive(Default)]
struct Told {
    delivery_id: Option<String>,
    event_type: Option<String>,
}

impl Once {
    fn of(line: Line) -> Result<Self, String> {
        let body = STANDARD.decode(&line.body_base64).map_err(|_| "body_base64 is no base64".to_owned())?;
        let now_unix = line.now_unix.unwrap_or_else(times::now_unix);
        Ok(Self { line, body, now_unix })
    }

    fn verify(&self) -> Result<Told, Verdict> {
        self.verify_body(&self.body, self.line.tolerance_seconds)
    }

    fn verify_body(&self, body: &[u8], tolerance_seconds: Option<u64>) -> Result<Told, Verdict> {
        let line = &self.line;
        let headers: Vec<(&str, &[u8])> =
            line.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let secrets: Vec<&str> = line.secrets.iter().map(String::as_str).collect();
        // Settings that are no text belong to schemes that take none.
        let settings: Vec<(&str, &str)> = line
            .config
            .iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect();
        let request = Request { method: &line.method, url: &line.url, headers: &headers, body };
        match verify_once(&line.scheme, &secrets, &request, self.now_unix, tolerance_seconds, &settings) {
            Ok(verified) => Ok(Told {
                delivery_id: verified.delivery_id.map(str::to_owned),
                event_type: verified.event_type.map(str::to_owned),
            }),
            Err(OnceError::Rejected(rejection)) => {
                Err(Verdict { reason: rejection.reason.as_str(), detail: rejection.detail.to_owned() })
            }
            Err(OnceError::UnknownScheme(error)) => {
                Err(Verdict { reason: "unknown_scheme", detail: error.to_string() })
            }
            Err(OnceError::Option(error)) => {
                Err(Verdict { reason: "bad_setting", detail: error.to_string() })
            }
        }
    }
}

/// One request, for a person: the verdict, and what to look at.
fn explain(args: &VerifyArgs) -> Result<Outcome, Failure> {
    let once = from_flags(args)?;
    let verdict = match once.verify() {
        Ok(told) => {
            let mut lines = vec![format!("{}: the signature fits", styled(GOOD, "valid"))];
            lines.extend(told.delivery_id.map(|id| format!("  delivery  {}", output::printable(&id))));
            lines.extend(
                told.event_type.map(|event_type| format!("  type      {}", output::printable(&event_type))),
            );
            return output::text(&lines.join("\n"));
        }
        Err(verdict) => verdict,
    };
    let mut lines = vec![format!("{}: {}: {}", styled(BAD, "invalid"), verdict.reason, verdict.detail)];
    lines.extend(
        hints(&once, verdict.reason).into_iter().map(|hint| format!("  {} {hint}", styled(FAINT, "→"))),
    );
    output::text(&lines.join("\n"))?;
    Ok(Outcome::Refused)
}

fn from_flags(args: &VerifyArgs) -> Result<Once, Failure> {
    let pairs = |texts: &[String], separator: char, flag: &str| {
        let pair = |text: &String| {
            let (name, value) = text.split_once(separator).ok_or_else(|| {
                Failure::usage(format!(
                    "{flag}: a name and a value are expected, with `{separator}` in between"
                ))
            })?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        };
        texts.iter().map(pair).collect::<Result<Vec<_>, Failure>>()
    };
    let secrets = args.secret.iter().map(|secret| match crate::config::follow(secret) {
        Some(followed) => followed.map_err(Failure::refused),
        None => Ok(secret.clone()),
    });
    let settings = pairs(&args.setting, '=', "--setting")?;
    let read = |value: String| match value.strip_prefix("file:") {
        Some(_) => crate::config::follow(&value).unwrap_or(Ok(value)).map_err(Failure::refused),
        None => Ok(value),
    };
    let config = settings.into_iter().map(|(name, value)| Ok((name, read(value)?.into())));
    let config = config.collect::<Result<BTreeMap<_, _>, Failure>>()?;
    Ok(Once {
        body: super::publish::data(&args.body)?,
        now_unix: args.now.unwrap_or_else(times::now_unix),
        line: Line {
            scheme: args.scheme.clone().unwrap_or_default(),
            secrets: secrets.collect::<Result<_, _>>()?,
            method: args.method.clone(),
            url: args.url.clone(),
            headers: pairs(&args.header, ':', "--header")?,
            body_base64: String::new(),
            now_unix: None,
            tolerance_seconds: args.tolerance,
            config: Some(config),
        },
    })
}

/// What to look at, by the reason; and what would have made it fit, where that can be tried.
fn hints(once: &Once, reason: &str) -> Vec<String> {
    let is = |wanted: Reason| reason == wanted.as_str();
    let mut hints = Vec::new();
    if is(Reason::TimestampTooOld) || is(Reason::TimestampTooNew) {
        hints.push(match once.verify_body(&once.body, Some(u64::MAX)) {
            Ok(_) => {
                "the signature itself fits: only its time is out; say when it arrived with --now".to_owned()
            }
            Err(_) => "the signature doesn't fit either".to_owned(),
        });
    }
    if is(Reason::SignatureMismatch) {
        let cut = once.body.strip_suffix(b"\n").map(|body| body.strip_suffix(b"\r").unwrap_or(body));
        if cut.is_some_and(|body| once.verify_body(body, once.line.tolerance_seconds).is_ok()) {
            hints.push(
                "it fits without the line's end after the body: an editor or `echo` has added one".to_owned(),
            );
        } else {
            hints.push(
                "the body must be the exact bytes that came, before any parsing or formatting".to_owned(),
            );
            hints.push("is it the secret of this very endpoint, and of this mode (test or live)?".to_owned());
        }
    }
    if is(Reason::MissingHeader) || is(Reason::MissingTimestamp) {
        let names: Vec<String> = once.line.headers.iter().map(|(name, _)| output::printable(name)).collect();
        hints.push(format!(
            "the headers given are: {}",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ));
    }
    if is(Reason::BadSecret) {
        hints.push("give the secret as the provider shows it, with its prefix, by --secret".to_owned());
    }
    hints
}
