//! Schedules as an operator meets them: in the file, on the command line, over a crash. Row B14.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod cli_support;

use std::fs;

use cli_support::{Server, run};
use serde_json::json;

const CONFIG: &str = r#"
[[queue]]
name = "reports"
on_unknown = "dead_letter"

[[schedule]]
name = "nightly"
cron = "30 2 * * *"
timezone = "Europe/Berlin"
to = { queue = "reports" }
type = "report.due"
payload = { at = "{{scheduled_at}}", kinds = ["sales", "stock"] }
owner = "team-reports"
"#;

fn folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("posthaste.toml"), config).unwrap();
    folder
}

#[test]
fn r_b14_the_command_line_makes_shows_pauses_runs_and_removes() {
    let folder = folder(CONFIG);
    let server = Server::start(folder.path());
    let shown = server.json(&["schedules", "show", "nightly"]);
    assert_eq!(
        json!(["file", "active", "team-reports", ["sales", "stock"]]),
        json!([shown["managed_by"], shown["state"], shown["owner"], shown["payload"]["kinds"]])
    );
    let refused = run(&mut server.command(&["schedules", "remove", "nightly"]));
    assert_eq!(Some(1), refused.code);
    assert!(refused.err.contains("managed by the configuration file"), "{}", refused.err);
    let add = ["schedules", "add", "hourly", "--cron", "@hourly", "--queue", "reports", "--catch-up", "once"];
    let made =
        server.json(&[&add[..], &["--data", "{\"a\": 1}", "--jitter", "30s", "--owner", "me"]].concat());
    assert_eq!(
        json!(["api", {"queue": "reports"}, "once", {"a": 1}, "30s", "me"]),
        json!([
            made["managed_by"],
            made["to"],
            made["catch_up"],
            made["payload"],
            made["jitter"],
            made["owner"]
        ])
    );
    let listed = server.cli(&["schedules", "list"]);
    for text in ["nightly", "30 2 * * *", "Europe/Berlin", "queue=reports", "hourly", "active"] {
        assert!(listed.contains(text), "{text}: {listed}");
    }
    let next = server.cli(&["schedules", "next", "nightly", "-n", "3"]);
    assert_eq!(3, next.matches("[Europe/Berlin]").count(), "{next}");
    let paused = server.cli(&["schedules", "pause", "hourly", "--reason", "stock-taking"]);
    assert!(paused.contains("hourly is paused"), "{paused}");
    assert_eq!("stock-taking", server.json(&["schedules", "show", "hourly"])["paused_reason"]);
    assert!(server.cli(&["schedules", "resume", "hourly", "--reason", "done"]).contains("hourly is active"));
    let ran = server.json(&["schedules", "run", "nightly"]);
    let key = ran["key"].as_str().unwrap();
    assert!(key.starts_with("schedule:nightly:run:"), "{key}");
    assert_eq!(1, server.json(&["timeline", key])["jobs"].as_array().unwrap().len());
    assert!(server.cli(&["schedules", "remove", "hourly"]).contains("removed schedule hourly"));
    let gone = run(&mut server.command(&["schedules", "show", "hourly"]));
    assert_eq!(Some(1), gone.code);
    assert!(gone.err.contains("there is no schedule \"hourly\""), "{}", gone.err);
}

#[cfg(feature = "faults")]
mod crash {
    use std::{path::Path, sync::Arc};

    use posthaste_core::{DestinationId, Timestamp};
    use posthaste_store::{
        Clock, NewSchedule, NextFire, Reads, ScheduleChange, Schedules,
        sqlite::{SqliteOptions, SqliteStore},
    };

    use super::{cli_support::posthaste, *};

    struct Still(Timestamp);

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    /// Puts the next firing of `every` three whole hours back, and gives its instant.
    async fn put_back(folder: &Path) -> Timestamp {
        let now = jiff::Timestamp::now().as_millisecond();
        let due = Timestamp((now / 3_600_000 - 3) * 3_600_000);
        let clock = Arc::new(Still(Timestamp(now)));
        let store = SqliteStore::open(SqliteOptions::new(folder.join("posthaste.db"), clock)).unwrap();
        let tenant = store.tenants().await.unwrap()[0].0;
        let row = store.schedule(tenant, DestinationId::new("every").unwrap()).await.unwrap().unwrap();
        let new = NewSchedule {
            tenant,
            id: row.id,
            config: row.config,
            managed_by: row.managed_by,
            enabled: true,
            owner: None,
            next: NextFire::At(Some(due)),
            must_be_new: false,
        };
        store.change_schedules(vec![ScheduleChange::Put(new)]).await.unwrap();
        due
    }

    #[tokio::test]
    async fn r_b14_a_crash_between_a_firing_and_its_note_neither_loses_nor_doubles_it() {
        let config = "[[queue]]\nname = \"reports\"\n[[schedule]]\nname = \"every\"\ncron = \"@every 1h\"\n\
                      to = { queue = \"reports\" }\ncatch_up = \"all\"\n";
        let folder = folder(config);
        let path = folder.path();
        assert_eq!(Some(0), Server::start(path).stop().code);
        let due = put_back(path).await;
        // Three were missed; the process ends once they are published.
        let mut command = posthaste(path, &["serve", "--listen", "127.0.0.1:0"]);
        command.env("POSTHASTE_FAULTS", "kill:mid_firing:1");
        // It may be killed before it says where it listens.
        let killed = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
        assert!(
            std::os::unix::process::ExitStatusExt::signal(&killed.unwrap()).is_some(),
            "it did not end by itself"
        );
        let server = Server::start(path);
        let at = |hour: i64| {
            let at = jiff::Timestamp::from_millisecond(due.0 + hour * 3_600_000).unwrap();
            format!("{at:.3}")
        };
        let begun = std::time::Instant::now();
        while server.json(&["schedules", "show", "every"])["last_fired_at"].is_null() {
            assert!(begun.elapsed().as_secs() < 60, "it never fires");
        }
        for hour in 0..=3 {
            let key = format!("schedule:every:{}", at(hour));
            let timeline = server.json(&["timeline", &key]);
            assert_eq!(1, timeline["jobs"].as_array().unwrap().len(), "{key}");
            let stages: Vec<_> =
                timeline["entries"].as_array().unwrap().iter().map(|entry| entry["stage"].clone()).collect();
            assert!(stages.contains(&json!("duplicate")), "it was published before the crash: {stages:?}");
        }
    }
}
