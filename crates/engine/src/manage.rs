//! Managing tenants, destinations, sources and API keys at run time. Rows G2, G6, E5.

use std::collections::BTreeMap;

use aws_lc_rs::{digest, rand};
use base64::Engine as _;
use posthaste_core::{ApiKeyId, DestinationId, TenantId, Timestamp};
use posthaste_store::{
    ApiKeyRow, Configure, Configured, DestinationKind, DestinationRow, ManagedBy, NewDestination,
};

use crate::{
    Engine, EngineError,
    config::{
        ConfigError, EndpointSpec, HandshakeSpec, QueueSpec, SourceSpec, compile_endpoint, compile_queue,
        compile_source, look_up_sample,
    },
    directory::Scope,
};

/// Stands for a value that is not shown.
pub const HIDDEN: &str = "(hidden)";

/// What came of making or changing a destination.
#[derive(Clone, Debug)]
pub struct PutOutcome {
    /// As stored.
    pub row: DestinationRow,
    /// A secret that was made for it: shown once.
    pub new_secret: Option<String>,
}

/// SHA-256 of an API key: what the store knows of it.
pub fn hash_api_key(key: &str) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, key.as_bytes());
    digest.as_ref().try_into().expect("SHA-256 gives 32 bytes")
}

impl Engine {
    /// Makes or changes an endpoint. One without secrets gets one, shown once.
    pub async fn put_endpoint(
        &self,
        tenant: TenantId,
        spec: EndpointSpec,
        managed_by: ManagedBy,
        must_be_new: bool,
    ) -> Result<PutOutcome, EngineError> {
        let (new, new_secret) = self.new_endpoint(tenant, spec, managed_by, must_be_new)?;
        Ok(PutOutcome { row: self.put(new).await?, new_secret })
    }

    /// What [`Engine::put_endpoint`] writes, and a secret that was made for it.
    pub(crate) fn new_endpoint(
        &self,
        tenant: TenantId,
        mut spec: EndpointSpec,
        managed_by: ManagedBy,
        must_be_new: bool,
    ) -> Result<(NewDestination, Option<String>), EngineError> {
        self.refuse_if_managed_by_file(tenant, &spec.id, managed_by)?;
        self.url_judge
            .check(&spec.url)
            .map_err(|problem| ConfigError::new("url", problem, "see docs/send.md"))?;
        self.judge_look_up(&spec)?;
        let new_secret = if spec.secrets.is_empty() && managed_by == ManagedBy::Api {
            let kept = self.kept_secrets(tenant, &spec.id, DestinationKind::Endpoint);
            if kept.is_empty() {
                let secret = posthaste_receiver::generate_secret()
                    .map_err(|error| EngineError::Secret(error.to_string()))?;
                spec.secrets = vec![secret.clone()];
                Some(secret)
            } else {
                spec.secrets = kept;
                None
            }
        } else {
            None
        };
        self.keep_hidden_headers(tenant, &mut spec)?;
        self.check_dead_letter_queue(tenant, spec.dead_letter_queue.as_deref(), managed_by)?;
        refuse_references(managed_by, spec.secrets.iter().chain(spec.headers.values()))?;
        let secrets = self.open_all(&spec.secrets)?;
        compile_endpoint(tenant, posthaste_core::LaneId(0), &self.with_headers(&spec)?, &secrets)?;
        spec.secrets = self.seal_all(&spec.secrets)?;
        for value in spec.headers.values_mut() {
            *value = self.secrets.seal(value).map_err(EngineError::Secret)?;
        }
        let config = serialised(&spec)?;
        let (id, owner, enabled) = (spec.id.clone(), spec.owner.clone(), spec.enabled.unwrap_or(true));
        let kind = DestinationKind::Endpoint;
        let new = NewFields { kind, id, config, owner, enabled, managed_by, must_be_new };
        Ok((new.of(tenant)?, new_secret))
    }

    /// The look-up's URL is judged as the delivery's is, by the names of some job.
    fn judge_look_up(&self, spec: &EndpointSpec) -> Result<(), ConfigError> {
        let Some(url) = look_up_sample(spec)? else { return Ok(()) };
        self.url_judge
            .check(&url)
            .map_err(|problem| ConfigError::new("reconcile.url", problem, "see docs/send.md"))
    }

    /// Makes or changes a queue.
    pub async fn put_queue(
        &self,
        tenant: TenantId,
        spec: QueueSpec,
        managed_by: ManagedBy,
        must_be_new: bool,
    ) -> Result<PutOutcome, EngineError> {
        let new = self.new_queue(tenant, &spec, managed_by, must_be_new)?;
        Ok(PutOutcome { row: self.put(new).await?, new_secret: None })
    }

    /// What [`Engine::put_queue`] writes.
    pub(crate) fn new_queue(
        &self,
        tenant: TenantId,
        spec: &QueueSpec,
        managed_by: ManagedBy,
        must_be_new: bool,
    ) -> Result<NewDestination, EngineError> {
        self.refuse_if_managed_by_file(tenant, &spec.name, managed_by)?;
        compile_queue(tenant, posthaste_core::LaneId(0), spec)?;
        self.check_dead_letter_queue(tenant, spec.dead_letter_queue.as_deref(), managed_by)?;
        let config = serialised(spec)?;
        let (id, owner, enabled) = (spec.name.clone(), spec.owner.clone(), spec.enabled.unwrap_or(true));
        let kind = DestinationKind::Queue;
        NewFields { kind, id, config, owner, enabled, managed_by, must_be_new }.of(tenant)
    }

    /// Makes or changes a source.
    pub async fn put_source(
        &self,
        tenant: TenantId,
        spec: SourceSpec,
        managed_by: ManagedBy,
        must_be_new: bool,
    ) -> Result<PutOutcome, EngineError> {
        let new = self.new_source(tenant, spec, managed_by, must_be_new)?;
        Ok(PutOutcome { row: self.put(new).await?, new_secret: None })
    }

    /// What [`Engine::put_source`] writes.
    pub(crate) fn new_source(
        &self,
        tenant: TenantId,
        mut spec: SourceSpec,
        managed_by: ManagedBy,
        must_be_new: bool,
    ) -> Result<NewDestination, EngineError> {
        self.refuse_if_managed_by_file(tenant, &spec.name, managed_by)?;
        let has_secrets = !matches!(spec.scheme.as_str(), "none" | "aws_sns");
        if spec.secrets.is_empty() && managed_by == ManagedBy::Api && has_secrets {
            spec.secrets = self.kept_secrets(tenant, &spec.name, DestinationKind::Source);
        }
        if spec.verify_token.as_deref().is_none_or(|token| token == HIDDEN)
            && managed_by == ManagedBy::Api
            && spec.handshake == Some(HandshakeSpec::Meta)
        {
            spec.verify_token = self.kept(tenant, &spec.name, DestinationKind::Source).verify_token;
        }
        refuse_references(managed_by, spec.secrets.iter().chain(&spec.verify_token))?;
        if managed_by == ManagedBy::Api && spec.schema.as_ref().is_some_and(serde_json::Value::is_string) {
            let problem = "file: names something on the server, which only its configuration file may do";
            return Err(ConfigError::new("schema", problem, "give the schema itself").into());
        }
        self.check_dead_letter_queue(tenant, spec.dead_letter_queue.as_deref(), managed_by)?;
        let secrets = self.open_all(&spec.secrets)?;
        compile_source(tenant, &self.with_opened(&spec)?, &secrets)?;
        spec.secrets = self.seal_all(&spec.secrets)?;
        if let Some(token) = &mut spec.verify_token {
            *token = self.secrets.seal(token).map_err(EngineError::Secret)?;
        }
        let config = serialised(&spec)?;
        let (id, owner, enabled) = (spec.name.clone(), spec.owner.clone(), spec.enabled.unwrap_or(true));
        let kind = DestinationKind::Source;
        NewFields { kind, id, config, owner, enabled, managed_by, must_be_new }.of(tenant)
    }

    /// Deletes a destination or source. Jobs that it was still owed are dead-lettered as `endpoint_gone`.
    pub async fn delete_destination(
        &self,
        tenant: TenantId,
        kind: DestinationKind,
        id: &DestinationId,
    ) -> Result<(), EngineError> {
        self.refuse_if_managed_by_file(tenant, id.as_str(), ManagedBy::Api)?;
        let directory = self.directory.load_full();
        let lane = directory.find(tenant, id).map(|entry| entry.row.lane);
        let change = Configure::DeleteDestination { tenant, id: id.clone(), kind };
        let configured = self.configure(change).await?;
        if configured != Configured::Deleted {
            return Err(EngineError::not_found(kind.as_str(), &id));
        }
        self.reload_directory().await?;
        if let Some(lane) = lane {
            self.forget_lane((tenant, lane));
            self.dispatcher.note((tenant, lane), Timestamp(i64::MIN));
        }
        Ok(())
    }

    /// Finds or makes a tenant.
    pub async fn ensure_tenant(&self, name: &str) -> Result<TenantId, EngineError> {
        DestinationId::new(name).map_err(|error| EngineError::Name { field: "tenant", error })?;
        if let Some(tenant) = self.directory.load().tenant(name) {
            return Ok(tenant);
        }
        let configured = self.configure(Configure::Tenant { name: name.into() }).await?;
        self.reload_directory().await?;
        match configured {
            Configured::Tenant(tenant) => Ok(tenant),
            Configured::Destination(_)
            | Configured::ApiKey(_)
            | Configured::Deleted
            | Configured::Missing
            | Configured::Taken(_) => Err(EngineError::not_found("tenant", &name)),
        }
    }

    /// Makes an API key; the key itself is in the answer and nowhere else.
    pub async fn create_api_key(
        &self,
        tenant: TenantId,
        name: &str,
        scopes: &str,
    ) -> Result<(ApiKeyRow, String), EngineError> {
        let mut random = [0; 32];
        rand::fill(&mut random)
            .map_err(|_| EngineError::Secret("no random bytes could be had".to_owned()))?;
        let key = format!("phk_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random));
        let row = self.store_api_key(tenant, name, scopes, &key).await?;
        Ok((row, key))
    }

    /// Stores an API key that somebody chose. The same key again is the same row.
    pub async fn store_api_key(
        &self,
        tenant: TenantId,
        name: &str,
        scopes: &str,
        key: &str,
    ) -> Result<ApiKeyRow, EngineError> {
        if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
            return Err(EngineError::invalid("name", "1 to 128 characters that can be shown"));
        }
        let words: Vec<&str> = scopes.split_ascii_whitespace().collect();
        if words.is_empty() || words.len() > 32 {
            return Err(EngineError::invalid("scopes", "1 to 32 of admin, publish, read, work, operate"));
        }
        if let Some(word) = words.iter().find(|word| Scope::parse(word).is_none()) {
            let problem = format!(
                "{word:?} is no scope; use admin, read, operate, publish, work, or publish:NAME and work:NAME"
            );
            return Err(EngineError::invalid("scopes", problem));
        }
        let now = self.clock.now();
        let row = ApiKeyRow {
            tenant,
            id: ApiKeyId(self.new_message_id().0),
            name: name.into(),
            secret_hash: hash_api_key(key),
            scopes: words.join(" ").into(),
            created_at: now,
            revoked_at: None,
        };
        let configured = self.configure(Configure::PutApiKey(row)).await?;
        self.reload_directory().await?;
        if let Configured::ApiKey(row) = configured {
            return Ok(*row);
        }
        Err(EngineError::Secret("the key was not stored".to_owned()))
    }

    /// Revokes an API key; it is refused from the next request on.
    pub async fn revoke_api_key(&self, tenant: TenantId, id: ApiKeyId) -> Result<(), EngineError> {
        let configured = self.configure(Configure::RevokeApiKey { tenant, id }).await?;
        self.reload_directory().await?;
        if configured == Configured::Missing { Err(EngineError::not_found("key", &id)) } else { Ok(()) }
    }

    pub(crate) async fn put(&self, new: NewDestination) -> Result<DestinationRow, EngineError> {
        let (tenant, id) = (new.tenant, new.id.to_string());
        let _changing = self.changing.lock().await;
        match self.configure(Configure::PutDestination(new)).await? {
            Configured::Destination(row) => {
                self.take_in(&row);
                Ok(*row)
            }
            Configured::Taken(by) => Err(EngineError::Taken { id, by }),
            Configured::Tenant(_) | Configured::ApiKey(_) | Configured::Deleted | Configured::Missing => {
                Err(EngineError::not_found("tenant", &tenant.0))
            }
        }
    }

    /// Asked before anything else is looked at: what a file defines is changed there, whatever was asked.
    fn refuse_if_managed_by_file(
        &self,
        tenant: TenantId,
        id: &str,
        managed_by: ManagedBy,
    ) -> Result<(), EngineError> {
        let known = DestinationId::new(id).is_ok_and(|id| self.directory.load().managed_by_file(tenant, &id));
        if known && managed_by == ManagedBy::Api {
            return Err(EngineError::ManagedByFile { id: id.to_owned() });
        }
        Ok(())
    }

    pub(crate) async fn configure(&self, change: Configure) -> Result<Configured, EngineError> {
        let mut configured = self.store.configure(vec![change]).await?;
        configured.pop().ok_or_else(|| {
            EngineError::Store(posthaste_store::StoreError::unavailable("an answer is missing"))
        })
    }

    /// The secrets that an endpoint or source has already, as stored: they stay where none are given.
    fn kept_secrets(&self, tenant: TenantId, id: &str, kind: DestinationKind) -> Vec<String> {
        self.kept(tenant, id, kind).secrets
    }

    /// A header that comes back as it was shown keeps its value: what was read can be changed and written back.
    fn keep_hidden_headers(&self, tenant: TenantId, spec: &mut EndpointSpec) -> Result<(), EngineError> {
        if spec.headers.values().all(|value| value != HIDDEN) {
            return Ok(());
        }
        let Kept { headers: kept, url, .. } = self.kept(tenant, &spec.id, DestinationKind::Endpoint);
        if !kept.is_empty() && origin(&url) != origin(&spec.url) {
            // Else whoever may change the URL could have what is hidden sent to a server of their own.
            let problem =
                format!("the URL leads elsewhere than before: what is {HIDDEN} stays with the old one");
            return Err(
                ConfigError::new("headers", problem, "give the values anew, or leave them out").into()
            );
        }
        for (name, value) in spec.headers.iter_mut().filter(|(_, value)| *value == HIDDEN) {
            let known = kept.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let missing = || {
                let problem = format!("{HIDDEN:?} stands for the value it has, and it has none");
                ConfigError::new(format!("headers.{name}"), problem, "give the value")
            };
            value.clone_from(known.map(|(_, kept)| kept).ok_or_else(missing)?);
        }
        Ok(())
    }

    fn kept(&self, tenant: TenantId, id: &str, kind: DestinationKind) -> Kept {
        let Ok(id) = DestinationId::new(id) else { return Kept::default() };
        let directory = self.directory.load();
        let row = directory.find(tenant, &id).filter(|entry| entry.row.kind == kind);
        row.and_then(|entry| parsed(&entry.row).ok()).unwrap_or_default()
    }

    /// The endpoint with its headers' values as they are sent: they are kept as secrets are.
    pub(crate) fn with_headers(&self, spec: &EndpointSpec) -> Result<EndpointSpec, EngineError> {
        let mut opened = spec.clone();
        for (name, value) in &mut opened.headers {
            *value = self.secrets.open(value).map_err(|problem| {
                ConfigError::new(
                    format!("headers.{name}"),
                    problem,
                    "give the value, or env:NAME or file:PATH in a file",
                )
            })?;
        }
        Ok(opened)
    }

    /// The source with its token and schema as they are used: what they refer to.
    pub(crate) fn with_opened(&self, spec: &SourceSpec) -> Result<SourceSpec, EngineError> {
        let mut opened = spec.clone();
        let remedy = "give env:NAME or file:PATH";
        if let Some(token) = &mut opened.verify_token {
            let open = self.secrets.open(token);
            *token = open.map_err(|problem| ConfigError::new("verify_token", problem, remedy))?;
        }
        if let Some(serde_json::Value::String(reference)) = &spec.schema
            && reference.starts_with("file:")
        {
            let open = self.secrets.open(reference);
            let text = open.map_err(|problem| ConfigError::new("schema", problem, "give file:PATH"))?;
            opened.schema = Some(parse_schema(&text)?);
        }
        Ok(opened)
    }

    /// A file's queues are made with what names them; over the API the queue comes first.
    fn check_dead_letter_queue(
        &self,
        tenant: TenantId,
        queue: Option<&str>,
        managed_by: ManagedBy,
    ) -> Result<(), EngineError> {
        let Some(queue) = queue.filter(|_| managed_by == ManagedBy::Api) else { return Ok(()) };
        let known =
            DestinationId::new(queue).is_ok_and(|id| self.directory.load().queue(tenant, &id).is_some());
        if known {
            return Ok(());
        }
        let problem = format!("there is no queue {queue:?}");
        Err(ConfigError::new("dead_letter_queue", problem, "make it first").into())
    }

    pub(crate) fn open_all(&self, secrets: &[String]) -> Result<Vec<String>, EngineError> {
        let open = |(index, stored): (usize, &String)| {
            self.secrets.open(stored).map_err(|problem| {
                let remedy = "give env:NAME, file:PATH, or over the API the secret itself";
                EngineError::from(ConfigError::new(format!("secrets[{index}]"), problem, remedy))
            })
        };
        secrets.iter().enumerate().map(open).collect()
    }

    fn seal_all(&self, secrets: &[String]) -> Result<Vec<String>, EngineError> {
        secrets.iter().map(|secret| self.secrets.seal(secret).map_err(EngineError::Secret)).collect()
    }
}

/// What of a destination's stored configuration is not shown, and stays where it is not given anew.
#[derive(Default, serde::Deserialize)]
struct Kept {
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    url: String,
    verify_token: Option<String>,
}

/// Scheme, host and port of a URL, as written but for the case.
fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    format!("{scheme}://{authority}").to_ascii_lowercase()
}

/// A reference names something on the server: only its own configuration may.
fn refuse_references<'a>(
    managed_by: ManagedBy,
    secrets: impl IntoIterator<Item = &'a String>,
) -> Result<(), EngineError> {
    let reference = |secret: &&String| secret.starts_with("env:") || secret.starts_with("file:");
    if managed_by == ManagedBy::Api && secrets.into_iter().any(|secret| reference(&secret)) {
        let problem = "env: and file: name something on the server, which only its configuration file may do";
        return Err(ConfigError::new(
            "secrets",
            problem,
            "give the secret itself; it is sealed in the store",
        )
        .into());
    }
    Ok(())
}

impl NewFields {
    fn of(self, tenant: TenantId) -> Result<NewDestination, EngineError> {
        let id = DestinationId::new(&self.id).map_err(|error| EngineError::Name { field: "id", error })?;
        Ok(NewDestination {
            tenant,
            id,
            kind: self.kind,
            config: self.config,
            managed_by: self.managed_by,
            enabled: self.enabled,
            owner: self.owner.map(Into::into),
            must_be_new: self.must_be_new,
        })
    }
}

struct NewFields {
    kind: DestinationKind,
    id: String,
    config: Box<str>,
    owner: Option<String>,
    enabled: bool,
    managed_by: ManagedBy,
    must_be_new: bool,
}

/// A schema that stands in a file.
pub fn parse_schema(text: &str) -> Result<serde_json::Value, ConfigError> {
    serde_json::from_str(text)
        .map_err(|error| ConfigError::new("schema", format!("the file is no JSON: {error}"), "mend it"))
}

pub(crate) fn serialised(spec: &impl serde::Serialize) -> Result<Box<str>, EngineError> {
    serde_json::to_string(spec)
        .map(Into::into)
        .map_err(|error| EngineError::invalid("configuration", error.to_string()))
}

pub(crate) fn parsed<T: serde::de::DeserializeOwned>(row: &DestinationRow) -> Result<T, EngineError> {
    serde_json::from_str(&row.config)
        .map_err(|error| EngineError::invalid("configuration", error.to_string()))
}
