//! The archive in a bucket that speaks S3. Each request is signed by [`rusty_s3`] and goes through the guarded
//! connector; a put names the SHA-256 of its body, which the server checks.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use posthaste_engine::{
    archive::{Archive, ArchiveError},
    ports::{Answered, BoxFuture, HttpSender, OutboundRequest, SendLimits, SendOutcome},
};
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};

/// How long a signature holds.
const SIGNED_FOR: Duration = Duration::from_mins(15);

/// Bytes of a file that is read: the largest payload as text, with room for its attempts.
const FILE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes of an error's text that are shown.
const ERROR_BYTES_MAX: usize = 300;

const LIMITS: SendLimits = SendLimits {
    connect_timeout: Duration::from_secs(10),
    tls_timeout: Duration::from_secs(10),
    first_byte_timeout: Duration::from_mins(1),
    total_timeout: Duration::from_mins(5),
    excerpt_bytes_max: FILE_BYTES_MAX,
};

/// Where a bucket is, and who asks.
#[derive(Clone, Copy)]
pub struct S3Place<'a> {
    /// The server: `https://s3.eu-west-1.amazonaws.com`.
    pub endpoint: &'a str,
    /// Its region.
    pub region: &'a str,
    /// The bucket.
    pub bucket: &'a str,
    /// Before each file's name; empty, or it ends in `/`.
    pub prefix: &'a str,
    /// The access key's id.
    pub access_key: &'a str,
    /// The secret access key.
    pub secret_key: &'a str,
}

/// A bucket.
pub struct S3Archive {
    bucket: Bucket,
    credentials: Credentials,
    prefix: String,
    place: String,
    sender: Arc<dyn HttpSender>,
}

impl std::fmt::Debug for S3Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Archive").field("place", &self.place).finish_non_exhaustive()
    }
}

impl S3Archive {
    /// The archive at `place`, spoken to through `sender`. Nothing is sent yet.
    ///
    /// Errors: the endpoint is no URL.
    pub fn new(place: &S3Place<'_>, sender: Arc<dyn HttpSender>) -> Result<Self, ArchiveError> {
        let shown = format!("s3://{}/{}", place.bucket, place.prefix);
        let wrong = |problem: String| ArchiveError::Unavailable { place: shown.clone(), problem };
        let endpoint = place.endpoint.parse().map_err(|error: url::ParseError| wrong(error.to_string()))?;
        // In the path: every server takes that, and a bucket's name may hold dots, which certificates don't cover.
        let (name, region) = (place.bucket.to_owned(), place.region.to_owned());
        let bucket = Bucket::new(endpoint, UrlStyle::Path, name, region);
        let bucket = bucket.map_err(|error| wrong(error.to_string()))?;
        let credentials = Credentials::new(place.access_key.to_owned(), place.secret_key.to_owned());
        Ok(Self { bucket, credentials, prefix: place.prefix.to_owned(), place: shown, sender })
    }

    async fn send(
        &self,
        method: &'static str,
        url: String,
        headers: Vec<(String, Vec<u8>)>,
        body: Bytes,
    ) -> Result<Answered, ArchiveError> {
        let request = OutboundRequest { url, method, headers, body, limits: LIMITS };
        match self.sender.send(request).await {
            SendOutcome::Answered(answered) => Ok(answered),
            SendOutcome::Blocked { reason } => {
                Err(self.unavailable(format!("it may not be spoken to: {reason}")))
            }
            SendOutcome::Unanswered { detail, .. } => Err(self.unavailable(detail)),
        }
    }

    fn unavailable(&self, problem: String) -> ArchiveError {
        ArchiveError::Unavailable { place: self.place.clone(), problem }
    }

    fn refused(&self, answered: &Answered) -> ArchiveError {
        let text = &answered.excerpt[..answered.excerpt.len().min(ERROR_BYTES_MAX)];
        self.unavailable(format!("answered {}: {}", answered.status, String::from_utf8_lossy(text)))
    }
}

impl Archive for S3Archive {
    fn put(&self, name: &str, bytes: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>> {
        let object = format!("{}{name}", self.prefix);
        Box::pin(async move {
            const CHECKSUM: &str = "x-amz-checksum-sha256";
            let checksum = STANDARD.encode(digest(&SHA256, &bytes));
            let mut action = self.bucket.put_object(Some(&self.credentials), &object);
            action.headers_mut().insert(CHECKSUM, checksum.clone());
            let url = action.sign(SIGNED_FOR).to_string();
            let headers = vec![(CHECKSUM.to_owned(), checksum.into_bytes())];
            let answered = self.send("PUT", url, headers, bytes).await?;
            if answered.status == 200 { Ok(()) } else { Err(self.refused(&answered)) }
        })
    }

    fn get(&self, name: &str) -> BoxFuture<'_, Result<Option<Bytes>, ArchiveError>> {
        let object = format!("{}{name}", self.prefix);
        Box::pin(async move {
            let action = self.bucket.get_object(Some(&self.credentials), &object);
            let url = action.sign(SIGNED_FOR).to_string();
            let answered = self.send("GET", url, Vec::new(), Bytes::new()).await?;
            match answered.status {
                200 if answered.excerpt_truncated => {
                    Err(self.unavailable(format!("{object} did not arrive whole")))
                }
                200 => Ok(Some(answered.excerpt)),
                404 => Ok(None),
                _ => Err(self.refused(&answered)),
            }
        })
    }

    fn place(&self) -> &str {
        &self.place
    }
}
