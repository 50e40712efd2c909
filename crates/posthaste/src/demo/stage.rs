//! The demo's place: a folder of its own, a configuration as a user would write it, a server.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context;
use posthaste_core::DurationMs;
use secrecy::{ExposeSecret, SecretString};

use super::{client::Client, provider};
use crate::{
    config::{self, Sources},
    serve::{self, Running},
};

/// A server with its store in a folder that is removed at the end.
pub(super) struct Stage {
    folder: PathBuf,
    store: PathBuf,
    running: Running,
    admin_key: SecretString,
    client: Client,
}

impl Stage {
    /// Starts the server: on a free port if it is only for the story, else on the usual one if that is free.
    pub(super) async fn set(exit: bool) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("posthaste-demo-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("can't make the folder {}", folder.display()))?;
        let store = folder.join("posthaste.db");
        let port = if exit || !usual_port_is_free().await { 0 } else { config::PORT_DEFAULT };
        let file = write_configuration(&folder, &store, port)?;
        // The demo is the same on every machine: nothing of the environment counts.
        let sources = Sources { file: Some(file), flags: Vec::new(), variables: Vec::new() };
        let config = config::load(&sources).map_err(|faults| anyhow::anyhow!("{faults}"))?;
        let running = serve::start(&config).await?;
        let admin_key = running.admin_key.clone().context("a new store gave no admin key")?;
        let client = Client::new(running.url(), admin_key.expose_secret().to_owned());
        Ok(Self { folder, store, running, admin_key, client })
    }

    pub(super) fn url(&self) -> String {
        self.running.url()
    }

    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    pub(super) fn admin_key(&self) -> &SecretString {
        &self.admin_key
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Stops the server and removes the folder.
    pub(super) async fn strike(self) {
        self.running.stop(DurationMs::from_secs(5)).await;
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(event = "demo_folder_left", folder = %self.folder.display(), %error);
        }
    }
}

async fn usual_port_is_free() -> bool {
    tokio::net::TcpListener::bind(("127.0.0.1", config::PORT_DEFAULT)).await.is_ok()
}

fn write_configuration(folder: &Path, store: &Path, port: u16) -> anyhow::Result<PathBuf> {
    let secret = folder.join("github.secret");
    std::fs::write(&secret, provider::SECRET)?;
    let mut text = String::new();
    writeln!(text, "store = {:?}", format!("sqlite:{}", store.display()))?;
    writeln!(text, "listen = \"127.0.0.1:{port}\"")?;
    writeln!(
        text,
        "[outbound]\nprivate_networks = [\"127.0.0.0/8\"]  # the demo's subscriber is on this machine"
    )?;
    writeln!(
        text,
        "[[source]]\nname = \"github\"\nscheme = \"github\"\nsecrets = [{:?}]",
        format!("file:{}", secret.display())
    )?;
    writeln!(text, "owner = \"team-platform\"")?;
    writeln!(
        text,
        "[[queue]]\nname = \"carts\"\nowner = \"team-checkout\"\n[queue.retry]\nbase = \"200ms\"\ncap = \"1s\""
    )?;
    let file = folder.join("posthaste.toml");
    std::fs::write(&file, text)?;
    Ok(file)
}
