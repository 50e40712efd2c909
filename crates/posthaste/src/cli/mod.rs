//! The command line: what a person or a script types. Talks HTTP to a server, except for `serve`, `demo`, `bench`,
//! `verify`, `check-config`, `states`, `classes` of no destination, and `completions`, which need none.

mod archive;
mod bench;
mod bulk;
mod check_config;
mod classes;
mod client;
mod destinations;
mod doctor;
mod exit;
mod jobs;
mod keys;
mod ledger;
mod operate;
mod output;
mod pauses;
mod publish;
mod reference;
mod schedules;
mod serve;
mod timeline;
mod times;
mod verify;

use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use posthaste_store::DestinationKind;

use self::exit::{Failure, Outcome};
pub(crate) use self::{
    output::{BAD, FAINT, GOOD, STRONG, styled},
    timeline::told as timeline_text,
};

/// Durable webhooks and delayed jobs in one binary.
#[derive(Debug, Parser)]
#[command(name = "posthaste", version, max_term_width = 120, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server
    Serve(serve::ServeArgs),
    /// See the main job, end to end, on this machine; then the server stays up
    Demo(DemoArgs),
    /// Accept a message: for a queue, an endpoint, or whoever subscribed to its type
    Publish(publish::PublishArgs),
    /// Every custody step of one key, at a glance
    Timeline(timeline::TimelineArgs),
    /// The six states: what each means, and what you can do
    States(OutputArgs),
    /// How failures are classified, and what follows; of one destination, with its own rules
    Classes(classes::ClassesArgs),
    /// List, show, cancel, replay, resend and reconcile jobs
    #[command(subcommand)]
    Jobs(jobs::JobsCommand),
    /// Hold scheduling, a queue, an endpoint or a source: nothing new begins, nothing is lost
    Pause(pauses::PauseArgs),
    /// Let go on what was paused
    Resume(pauses::ResumeArgs),
    /// Destinations that we push to
    #[command(subcommand)]
    Endpoints(destinations::DestinationsCommand),
    /// Destinations that workers pull from
    #[command(subcommand)]
    Queues(destinations::DestinationsCommand),
    /// Named intakes for signed requests
    #[command(subcommand)]
    Sources(destinations::DestinationsCommand),
    /// What is enqueued when
    #[command(subcommand)]
    Schedules(schedules::SchedulesCommand),
    /// API keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// The receiver's ledger: entries of the server, and SQL for your own
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// What left the store: move, list, check
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Check the signature of a request, and say why it doesn't fit
    Verify(verify::VerifyArgs),
    /// Measure this program on this machine, against what HTTP and the disk alone can do
    Bench(bench::BenchArgs),
    /// A process of `bench`
    #[command(subcommand, hide = true)]
    BenchChild(bench::BenchChild),
    /// Find every mistake of a configuration
    CheckConfig(check_config::CheckConfigArgs),
    /// Look for what is wrong, or will be: the configuration, the providers' patience, the server
    Doctor(doctor::DoctorArgs),
    /// Completions for your shell
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
struct DemoArgs {
    /// End after the story; exit 0 only if every step held
    #[arg(long)]
    exit: bool,
    /// Break one step on purpose: the demo must notice
    #[arg(long = "break", value_name = "STEP", hide = true)]
    sabotage: Option<crate::demo::Sabotage>,
}

#[derive(Debug, Args)]
struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Args)]
struct OutputArgs {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Which server, and as who.
#[derive(Clone, Debug, Args)]
struct ServerArgs {
    /// The server
    #[arg(long, env = "POSTHASTE_URL", default_value = "http://127.0.0.1:8484", value_name = "URL")]
    url: String,
    /// The API key
    #[arg(long, env = "POSTHASTE_API_KEY", hide_env_values = true, value_name = "KEY")]
    api_key: Option<String>,
    /// The tenant, for an admin key
    #[arg(long, env = "POSTHASTE_TENANT", value_name = "NAME")]
    tenant: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs what the process was asked for.
pub fn run() -> ExitCode {
    // Exits with 2 where the usage is wrong, with 0 for help and version.
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return exit::report(Err(Failure::refused(format!("the runtime can't start: {error}"))));
        }
    };
    exit::report(runtime.block_on(dispatch(cli.command)))
}

async fn dispatch(command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Serve(args) => serve::run(args).await,
        Command::Demo(args) => demo(args).await,
        Command::Publish(args) => publish::run(args).await,
        Command::Timeline(args) => timeline::run(args).await,
        Command::States(args) => reference::states(args),
        Command::Classes(args) => classes::run(args).await,
        Command::Jobs(command) => jobs::run(command).await,
        Command::Pause(args) => pauses::pause(args).await,
        Command::Resume(args) => pauses::resume(args).await,
        Command::Endpoints(command) => destinations::run(DestinationKind::Endpoint, command).await,
        Command::Queues(command) => destinations::run(DestinationKind::Queue, command).await,
        Command::Sources(command) => destinations::run(DestinationKind::Source, command).await,
        Command::Schedules(command) => schedules::run(command).await,
        Command::Keys(command) => keys::run(command).await,
        Command::Ledger(command) => ledger::run(command).await,
        Command::Archive(command) => archive::run(command).await,
        Command::Verify(args) => verify::run(&args),
        Command::Bench(args) => bench::run(args).await,
        Command::BenchChild(child) => bench::run_child(child).await,
        Command::CheckConfig(args) => check_config::run(&args),
        Command::Doctor(args) => doctor::run(&args).await,
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "posthaste", &mut script);
            output::bytes(&script)
        }
    }
}

async fn demo(args: DemoArgs) -> Result<Outcome, Failure> {
    crate::demo::run(args.exit, args.sabotage)
        .await
        .map(|()| Outcome::Done)
        .map_err(|error| Failure::refused(format!("{error:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
