//! What stands between the slashes of a path.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::{Code, Problem};

/// The named segments of a path. What can't be read names nothing: 404.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(segments)| Self(segments))
            .map_err(|_| Problem::new(Code::NotFound, "there is nothing at this path"))
    }
}
