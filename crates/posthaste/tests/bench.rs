//! The load test is run as an operator runs it, with sizes that say nothing but show that every figure is there.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod cli_support;

use cli_support::{posthaste, run};
use serde_json::Value;

/// Runs one scenario, which must end well, and gives its figures.
fn bench(scenario: &str, sizes: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let common = ["bench", scenario, "--json", "--connections", "4"];
    let seconds = if sizes.contains(&"--seconds") { &[][..] } else { &["--seconds", "0.5"] };
    let ended = run(&mut posthaste(folder.path(), &[&common, seconds, sizes].concat()));
    assert_eq!(Some(0), ended.code, "{}\n{}", ended.err, ended.out);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?} was left behind");
    let mut report: Value = serde_json::from_str(&ended.out).unwrap();
    assert!(report["machine"]["sync_p50_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(true, report["clean"]);
    assert_eq!(scenario, report["results"][0]["scenario"]);
    serde_json::from_value(report["results"][0]["figures"].take()).unwrap()
}

fn measure(figure: &Value, name: &str) -> f64 {
    let value = figure["measures"][name].as_f64();
    value.unwrap_or_else(|| panic!("{name} is missing: {figure:#}"))
}

/// Each of these measures is there and above nothing.
fn has(figure: &Value, names: &[&str]) {
    for name in names {
        assert!(measure(figure, name) > 0.0, "{name}: {figure:#}");
    }
}

const LOAD: &[&str] = &["rate_per_s", "p50_ms", "p99_ms", "p99_to_sync"];

#[test]
fn r_f8_accept_and_publish_are_compared_with_bare_http() {
    for scenario in ["accept", "publish"] {
        let figures = bench(scenario, &[]);
        assert_eq!(1, figures.len());
        assert_eq!("4 connections", figures[0]["name"]);
        has(&figures[0], LOAD);
        has(&figures[0], &["rate_to_bare", "bare_rate_per_s"]);
        if cfg!(target_os = "linux") {
            has(&figures[0], &["server_cpu_s", "server_cpu_us_each", "rss_mib", "rss_peak_mib"]);
        }
    }
}

#[test]
fn r_f8_end_to_end_counts_what_was_committed() {
    let figures = bench("end-to-end", &["--endpoint-count", "3"]);
    assert_eq!(3, figures.len());
    for figure in &figures {
        has(figure, &["rate_per_s", "p50_ms", "p99_ms"]);
    }
    has(&figures[0], &["jobs", "seconds"]);
    has(&figures[1], &["jobs", "seconds"]);
    assert!(figures[1]["name"].as_str().unwrap().starts_with("3 endpoints"));
}

#[test]
fn r_f8_pull_works_the_whole_queue_through() {
    let figures = bench("pull", &["--jobs", "1050"]);
    has(&figures[0], LOAD);
    assert!((measure(&figures[0], "jobs") - 1_050.0).abs() < 0.5);
}

#[test]
fn r_f8_a_backlog_is_compared_with_an_empty_store() {
    let figures = bench("backlog", &["--jobs", "500", "--scheduled", "2000"]);
    let named = |name: &str| figures.iter().find(|figure| figure["name"] == name).unwrap();
    has(named("full: start"), &["start_up_ms", "ready_ms", "store_mib"]);
    assert!((measure(named("full: start"), "waiting_jobs") - 2_000.0).abs() < 0.5);
    has(named("full: publish → picked up"), &["p50_ms", "p99_ms", "p99_to_alone"]);
    has(named("full: 4 connections"), &["rate_per_s", "rate_to_alone"]);
    assert_eq!(8, figures.len());
}

#[test]
fn r_f8_one_destination_is_measured_beside_others() {
    let figures = bench("isolation", &["--endpoint-count", "3", "--due", "300"]);
    assert_eq!(6, figures.len());
    for figure in &figures {
        has(figure, &["rate_per_s", "p50_ms", "p99_ms"]);
        assert!(measure(figure, "undelivered") < 0.5);
    }
    for beside in [1, 3, 5] {
        has(&figures[beside], &["rate_to_alone", "p99_to_alone"]);
    }
}

#[test]
fn r_f8_a_fan_out_is_timed_with_what_others_notice_of_it() {
    let figures = bench("fan-out", &["--endpoint-count", "150"]);
    has(&figures[0], LOAD);
    has(&figures[1], LOAD);
    has(&figures[1], &["acknowledged_ms", "all_committed_s", "p99_to_alone"]);
    assert!((measure(&figures[1], "jobs") - 150.0).abs() < 0.5);
}

#[test]
fn r_f8_slow_clients_are_measured_by_what_they_cost_others() {
    let figures = bench("slow-clients", &["--slow-connections", "20"]);
    assert_eq!(3, figures.len());
    for slow in &figures[1..] {
        has(slow, LOAD);
        has(slow, &["rate_to_alone"]);
        assert!(measure(slow, "connections") >= 20.0);
    }
}

#[test]
fn r_f8_a_soak_keeps_account_of_every_job() {
    let figures = bench("soak", &["--seconds", "6", "--endpoint-count", "20"]);
    let named = |name: &str| figures.iter().find(|figure| figure["name"] == name).unwrap();
    let whole = named("all together");
    has(whole, &["acknowledged_jobs", "committed_jobs", "dead_lettered_jobs", "store_bytes_each"]);
    assert!((measure(whole, "acknowledged_jobs") - measure(whole, "known_jobs")).abs() < 0.5);
    let samples: Vec<_> = figures.iter().filter(|figure| figure["unit"] == "samples").collect();
    assert_eq!(10, samples.len());
    for sample in samples {
        has(sample, &["p99_ms", "database_mib", "committed_jobs"]);
    }
    let lines = measure(named("log: WARN dead_letter"), "log_lines");
    assert!((lines - measure(whole, "dead_lettered_jobs")).abs() < 0.5);
}

#[test]
fn several_runs_give_their_medians_and_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = ["--runs", "3", "--seconds", "0.2", "--connections", "2"];
    let ended = run(&mut posthaste(folder.path(), &[&["bench", "publish", "--json"][..], &sizes].concat()));
    assert_eq!(Some(0), ended.code, "{}", ended.err);
    assert!(ended.err.contains("publish, run 3 of 3"), "{}", ended.err);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let result = &report["results"][0];
    let mut rates: Vec<f64> = (0..3).map(|run| measure(&result["runs"][run][0], "rate_to_bare")).collect();
    rates.sort_by(f64::total_cmp);
    assert!((rates[1] - measure(&result["figures"][0], "rate_to_bare")).abs() < 1e-9);
}

#[test]
fn a_report_for_people_says_what_its_figures_are_worth() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = ["--seconds", "0.2", "--connections", "2"];
    let ended = run(&mut posthaste(folder.path(), &[&["bench", "publish"][..], &sizes].concat()));
    assert_eq!(Some(0), ended.code, "{}", ended.err);
    for text in ["share these cores", "level warn", "fdatasync", "÷BARE", "2 connections"] {
        assert!(ended.out.contains(text), "{text}: {}", ended.out);
    }
    assert!(!format!("{}{}", ended.out, ended.err).contains("phk_"), "no key is shown");
}

#[test]
fn what_can_not_be_measured_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [["bench", "nothing"], ["bench", "--seconds=0"], ["bench", "--connections=0"]] {
        assert_eq!(Some(2), run(&mut posthaste(folder.path(), &arguments)).code, "{arguments:?}");
    }
    let ended = run(&mut posthaste(folder.path(), &["bench", "accept", "--store-folder", "/proc/none"]));
    assert_eq!(Some(1), ended.code);
    assert!(ended.err.contains("/proc/none"), "{}", ended.err);
}
