//! The archive: run a pass, list its files, check one of them. For administrators: a file holds every tenant's.

use axum::{extract::State, response::Response};
use http::{StatusCode, Uri};
use posthaste_core::DurationMs;
use posthaste_engine::RetainError;
use posthaste_store::ArchiveFile;
use serde::Serialize;
use utoipa::ToSchema;

use super::{AppState, Caller, Code, Problem, json::answer, problem::ProblemJson, query::Query, time::Time};

/// How long a pass is waited for: less than clients wait.
const PATIENCE: DurationMs = DurationMs::from_secs(20);

/// A file of the archive.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ArchiveFile)]
pub(super) struct FileJson {
    /// Its name.
    file: String,
    /// Messages and ledger entries in it.
    records: u64,
    /// Its length, packed.
    bytes: u64,
    /// SHA-256 of it as it is kept, in hexadecimal.
    sha256: String,
    /// The key of its first record.
    first_key: String,
    /// The key of its last record.
    last_key: String,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    written_at: Time,
}

/// A page of files, by name, which is by age.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ArchiveFiles {
    /// The files.
    data: Vec<FileJson>,
    /// Gives the next page; `null` at the end.
    next_cursor: Option<String>,
}

/// What a pass did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ArchivePass {
    /// `done`, or `running` if it takes longer: ask again.
    state: &'static str,
    /// Files written.
    files: usize,
    /// Messages and ledger entries that left the store.
    archived: usize,
    /// Those that changed meanwhile, and stay.
    changed: usize,
}

/// Whether a file is as it was written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ArchiveCheck {
    /// Its name.
    file: String,
    /// Whether nothing is wrong.
    ok: bool,
    /// What is wrong.
    problems: Vec<String>,
}

/// Moves everything that expired to the archive now, and waits for it up to 20 s.
#[utoipa::path(
    post, path = "/v1/archive/run", operation_id = "archive.run", tag = "archive",
    responses(
        (status = 200, description = "What was done", body = ArchivePass),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn run(State(state): State<AppState>, caller: Caller) -> Result<Response, Problem> {
    caller.require_admin()?;
    let Some(pass) = state.engine().archive_within(PATIENCE).await else {
        return Ok(answer(StatusCode::OK, &ArchivePass::running()));
    };
    match pass {
        Ok(run) => {
            let (files, archived, changed) = (run.files, run.gone, run.changed);
            Ok(answer(StatusCode::OK, &ArchivePass { state: "done", files, archived, changed }))
        }
        Err(RetainError::NotConfigured) => {
            Err(Problem::new(Code::ArchiveNotConfigured, RetainError::NotConfigured.to_string()))
        }
        Err(RetainError::Store(error)) => Err(error.into()),
        Err(error @ RetainError::Panicked) => Err(Problem::new(Code::Internal, error.to_string())),
        Err(error @ (RetainError::Archive(_) | RetainError::NotTheSame(_))) => {
            Err(Problem::new(Code::ArchiveUnavailable, error.to_string()))
        }
    }
}

impl ArchivePass {
    fn running() -> Self {
        Self { state: "running", files: 0, archived: 0, changed: 0 }
    }
}

/// Lists the files that the store refers to.
#[utoipa::path(
    get, path = "/v1/archive/files", operation_id = "archive.list", tag = "archive",
    params(
        ("limit" = Option<usize>, Query, description = "At most so many, 1 to 500; 50 unless told"),
        ("cursor" = Option<String>, Query, description = "From `next_cursor`"),
    ),
    responses(
        (status = 200, description = "The files", body = ArchiveFiles),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_admin()?;
    let query = Query::parse(&uri, &["limit", "cursor"])?;
    let limit = query.limit()?;
    let files = state.engine().archive_files(query.get("cursor"), limit).await?;
    let next_cursor = files.last().filter(|_| files.len() == limit).map(|last| last.file.to_string());
    let data = files.iter().map(FileJson::of).collect();
    Ok(answer(StatusCode::OK, &ArchiveFiles { data, next_cursor }))
}

/// Checks one file: its bytes, its manifest, its lines, and that every key is where the store has it.
#[utoipa::path(
    get, path = "/v1/archive/verify", operation_id = "archive.verify", tag = "archive",
    params(("file" = String, Query, description = "The file's name")),
    responses(
        (status = 200, description = "What was found", body = ArchiveCheck),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn verify(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_admin()?;
    let query = Query::parse(&uri, &["file"])?;
    let name = query.get("file").unwrap_or_default();
    let Some(known) = state.engine().archive_file(name).await? else {
        return Err(Problem::new(Code::NotFound, format!("the archive has no file {name:?}")));
    };
    let file = known.file.to_string();
    let problems = state.engine().verify_archive_file(known).await?;
    Ok(answer(StatusCode::OK, &ArchiveCheck { file, ok: problems.is_empty(), problems }))
}

impl FileJson {
    fn of(file: &ArchiveFile) -> Self {
        Self {
            file: file.file.to_string(),
            records: file.records,
            bytes: file.bytes,
            sha256: posthaste_engine::archive::hex(&file.sha256),
            first_key: file.first_key.to_string(),
            last_key: file.last_key.to_string(),
            written_at: Time(file.written_at),
        }
    }
}
