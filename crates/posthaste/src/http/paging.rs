//! Lists: `?limit=&cursor=` gives `{"data":[…],"next_cursor":…}`.

use serde::Serialize;
use utoipa::ToSchema;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// The rows.
    pub(crate) data: Vec<T>,
    /// Give it as `cursor` to get the next page; `null` on the last one.
    pub(crate) next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A page of what is in memory whole, sorted by `id`: what comes after `cursor`.
    pub(crate) fn of_sorted(
        all: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> String,
        cursor: Option<&str>,
        limit: usize,
    ) -> Self {
        let after = |row: &T| cursor.is_none_or(|cursor| id(row).as_str() > cursor);
        let mut data: Vec<T> = all.into_iter().filter(after).take(limit + 1).collect();
        let more = data.len() > limit;
        data.truncate(limit);
        let next_cursor = data.last().filter(|_| more).map(id);
        Self { data, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_gap_or_overlap() {
        let all = ["a", "b", "c"];
        let page = |cursor, limit| Page::of_sorted(all, |id| (*id).to_owned(), cursor, limit);
        let first = page(None, 2);
        assert_eq!((vec!["a", "b"], Some("b".to_owned())), (first.data, first.next_cursor));
        let second = page(Some("b"), 2);
        assert_eq!((vec!["c"], None), (second.data, second.next_cursor));
        assert_eq!(None, page(None, 3).next_cursor);
    }
}
