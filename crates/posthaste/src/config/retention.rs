//! `[retention]`: how long what is settled stays, and where it goes. Row C9.

use std::path::PathBuf;

use posthaste_core::{DurationMs, LaneId, TenantId};
use posthaste_engine::{
    RetrySpan,
    config::{compile_endpoint, compile_queue, format_duration, parse_duration},
};
use posthaste_store::Retention;
use secrecy::SecretString;

use super::{
    destinations::{Declared, Spec},
    document::Shown,
    fault::{Fault, Wrong},
    references::follow,
    settings::{Found, Layers, text},
};

/// The three stays: setting and default.
const STAYS: [(&str, DurationMs); 3] = [
    ("retention.committed", DurationMs::from_hours(30 * 24)),
    ("retention.dead_lettered", DurationMs::from_hours(90 * 24)),
    ("retention.ledger", DurationMs::from_hours(90 * 24)),
];

const ARCHIVE_REMEDY: &str = "write \"file:/var/lib/posthaste/archive\" or \"s3://bucket/prefix\", or \"none\" to give \
                              up everything but keys and outcomes";

/// How long things stay, and where they go.
#[derive(Clone, Debug)]
pub struct RetentionConfig {
    /// How long what is settled stays.
    pub retention: Retention,
    /// Where it goes; `None`: nothing ever leaves.
    pub archive: Option<ArchiveConfig>,
    /// Between two passes.
    pub every: DurationMs,
}

/// Where what expired goes.
#[derive(Clone, Debug)]
pub enum ArchiveConfig {
    /// Nowhere: only keys and outcomes stay.
    GivenUp,
    /// To a folder.
    Folder(PathBuf),
    /// To a bucket.
    S3(Box<S3Config>),
}

/// A bucket, and who asks.
#[derive(Clone, Debug)]
pub struct S3Config {
    /// The server.
    pub endpoint: String,
    /// Its region.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// Before each file's name; empty, or it ends in `/`.
    pub prefix: String,
    /// The access key's id.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: SecretString,
}

/// Reads the section. What is wrong is noted in `layers`.
pub(super) fn read(layers: &mut Layers<'_>, declared: &[Declared]) -> (RetentionConfig, Vec<Fault>) {
    let longest = longest(declared);
    let mut stays = [DurationMs::ZERO; 3];
    let mut given = Vec::new();
    for (at, (setting, default)) in STAYS.into_iter().enumerate() {
        stays[at] = default;
        if let Some(found) = layers.take(setting) {
            match duration(&found) {
                Ok(stay) => stays[at] = stay,
                Err(wrong) => layers.faults.push(found.fault(setting, wrong)),
            }
            given.push((at, found));
        }
    }
    let archive_found = layers.take("retention.archive");
    let archive = archive_found.as_ref().and_then(|found| archive(layers, found));
    if let Some((of, span)) = longest.filter(|_| archive_found.is_some() || !given.is_empty()) {
        for (at, (setting, _)) in STAYS.into_iter().enumerate().filter(|(at, _)| stays[*at] < span.total) {
            let wrong = too_short(stays[at], of, &span);
            let found = given.iter().find(|(given, _)| *given == at).map(|(_, found)| found);
            layers.faults.push(match found.or(archive_found.as_ref()) {
                Some(found) => found.fault(setting, wrong),
                None => of.fault(setting, wrong),
            });
        }
    }
    let warnings = match (&archive_found, given.first()) {
        (None, Some((at, found))) => {
            let wrong = Wrong::new("without `retention.archive` nothing is deleted", ARCHIVE_REMEDY);
            vec![found.document.fault_at(STAYS[*at].0, &found.key, Shown::Line, wrong)]
        }
        _ => Vec::new(),
    };
    let every = layers.read("retention.every", |value| every(text(value)?));
    let [committed, dead_lettered, ledger] = stays;
    let retention = Retention { committed, dead_lettered, ledger };
    let every = every.unwrap_or(DurationMs::from_hours(1));
    (RetentionConfig { retention, archive, every }, warnings)
}

fn duration(found: &Found<'_>) -> Result<DurationMs, Wrong> {
    let read = parse_duration(text(found.value.get_ref())?);
    read.map_err(|error| Wrong::new(error.to_string(), "write for example \"30d\""))
}

fn every(text: &str) -> Result<DurationMs, Wrong> {
    let every = parse_duration(text).map_err(|error| Wrong::new(error.to_string(), ""))?;
    if (DurationMs::from_secs(1)..=DurationMs::from_hours(24)).contains(&every) {
        return Ok(every);
    }
    Err(Wrong::new("this is out of range", "give 1s to 1d"))
}

/// The destination whose jobs may be tried longest.
fn longest(declared: &[Declared]) -> Option<(&Declared, RetrySpan)> {
    let span = |one: &Declared| match &one.spec {
        Spec::Endpoint(spec) => {
            let endpoint = compile_endpoint(TenantId(1), LaneId(1), spec, &[]).ok()?;
            Some(RetrySpan::of(&endpoint.policy))
        }
        Spec::Queue(spec) => Some(RetrySpan::of(&compile_queue(TenantId(1), LaneId(1), spec).ok()?.policy)),
        Spec::Source(_) | Spec::Schedule(_) => None,
    };
    declared.iter().filter_map(|one| Some((one, span(one)?))).max_by_key(|(_, span)| span.total)
}

fn too_short(stay: DurationMs, of: &Declared, span: &RetrySpan) -> Wrong {
    const DAY: u64 = 86_400_000;
    let problem = format!(
        "{} is shorter than a job may be tried: {} takes {}",
        format_duration(stay),
        of.spec.id(),
        span.arithmetic
    );
    let days = span.total.0.div_ceil(DAY);
    Wrong::new(problem, format!("write \"{days}d\" or more, or give {} a shorter retry", of.spec.id()))
}

fn archive(layers: &mut Layers<'_>, found: &Found<'_>) -> Option<ArchiveConfig> {
    let read = text(found.value.get_ref()).and_then(|text| {
        if text == "none" {
            return Ok(Some(ArchiveConfig::GivenUp));
        }
        if let Some(folder) = text.strip_prefix("file:").filter(|folder| !folder.is_empty()) {
            return Ok(Some(ArchiveConfig::Folder(folder.into())));
        }
        match text.strip_prefix("s3://").and_then(bucket) {
            Some((bucket, prefix)) => Ok(s3(layers, bucket, prefix)),
            None => Err(Wrong::new("this is no archive", ARCHIVE_REMEDY)),
        }
    });
    read.map_err(|wrong| layers.faults.push(found.fault("retention.archive", wrong))).ok().flatten()
}

/// Bucket and prefix.
fn bucket(text: &str) -> Option<(&str, String)> {
    let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let prefix = prefix.trim_matches('/');
    let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    ((3..=63).contains(&bucket.len()) && bucket.bytes().all(fits)).then_some((bucket, prefix))
}

fn s3(layers: &mut Layers<'_>, bucket: &str, prefix: String) -> Option<ArchiveConfig> {
    let region = layers
        .read("retention.region", |value| Ok(text(value)?.to_owned()))
        .unwrap_or_else(|| "us-east-1".to_owned());
    let endpoint = layers
        .read("retention.endpoint", |value| {
            let text = text(value)?;
            let parsed = url::Url::parse(text).ok();
            parsed
                .filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some())
                .ok_or_else(|| {
                    Wrong::new("this is no URL", "write for example \"https://s3.eu-west-1.amazonaws.com\"")
                })?;
            Ok(text.trim_end_matches('/').to_owned())
        })
        .unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
    let access_key = credential(layers, "retention.access_key", "env:AWS_ACCESS_KEY_ID")?;
    let secret_key = credential(layers, "retention.secret_key", "env:AWS_SECRET_ACCESS_KEY")?.into();
    let bucket = bucket.to_owned();
    Some(ArchiveConfig::S3(Box::new(S3Config { endpoint, region, bucket, prefix, access_key, secret_key })))
}

/// What a reference refers to: a credential itself has no place in a file.
fn credential(layers: &mut Layers<'_>, setting: &'static str, example: &str) -> Option<String> {
    let Some(found) = layers.take(setting) else {
        let (_, problem) = (setting, format!("`{setting}` is missing: an s3 archive needs it"));
        layers.faults.push(Fault {
            place: super::fault::Place::Whole("[retention]".to_owned()),
            path: setting.to_owned(),
            problem,
            remedy: format!("write {example:?}"),
            excerpt: None,
        });
        return None;
    };
    let read = text(found.value.get_ref()).and_then(|value| match follow(value) {
        Some(Ok(secret)) => Ok(secret),
        Some(Err(problem)) => Err(Wrong::new(problem, "")),
        None => Err(Wrong::new(
            "a credential itself has no place in a configuration",
            format!("write {example:?} or \"file:PATH\""),
        )),
    });
    read.map_err(|wrong| layers.faults.push(found.fault(setting, wrong))).ok()
}

impl Declared {
    /// A fault of a setting that is not written, said where this destination stands.
    fn fault(&self, setting: &str, wrong: Wrong) -> Fault {
        Fault {
            place: self.place.clone(),
            path: setting.to_owned(),
            problem: wrong.problem,
            remedy: wrong.remedy,
            excerpt: None,
        }
    }
}
