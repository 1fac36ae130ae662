//! Rows, read by column name.

use sea_orm::{DbErr, QueryResult, TryGetable};

use crate::{Error, Instant, Result};

/// One row of a result.
#[derive(Debug)]
pub struct Row(QueryResult);

impl Row {
    pub(crate) fn new(inner: QueryResult) -> Row {
        Row(inner)
    }

    /// An integer column of any width. NULL is an error.
    pub fn int(&self, column: &str) -> Result<i64> {
        self.maybe_int(column)?.ok_or_else(|| null(column))
    }

    /// An integer column of any width. PostgreSQL is strict about widths, the schema is not.
    pub fn maybe_int(&self, column: &str) -> Result<Option<i64>> {
        if let Ok(value) = self.0.try_get::<Option<i64>>("", column) {
            return Ok(value);
        }
        if let Ok(value) = self.0.try_get::<Option<i32>>("", column) {
            return Ok(value.map(i64::from));
        }
        self.get::<Option<i16>>(column).map(|value| value.map(i64::from))
    }

    /// A text column. NULL is an error.
    pub fn text(&self, column: &str) -> Result<String> {
        self.get(column)
    }

    /// A text column.
    pub fn maybe_text(&self, column: &str) -> Result<Option<String>> {
        self.get(column)
    }

    /// An instant. NULL is an error.
    pub fn instant(&self, column: &str) -> Result<Instant> {
        self.get(column)
    }

    /// An instant.
    pub fn maybe_instant(&self, column: &str) -> Result<Option<Instant>> {
        self.get(column)
    }

    /// The names of the columns, in order.
    pub fn columns(&self) -> Vec<String> {
        self.0.column_names()
    }

    /// Any column as text, for showing rows whose shape is not known: NULL is `None`.
    pub fn shown(&self, column: &str) -> Option<String> {
        if let Ok(value) = self.maybe_int(column) {
            return value.map(|v| v.to_string());
        }
        if let Ok(value) = self.get::<Option<Instant>>(column) {
            return value.map(|v| v.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true));
        }
        self.maybe_text(column).ok().flatten()
    }

    pub(crate) fn first_int(&self) -> Result<Option<i64>> {
        match self.columns().first() {
            Some(column) => self.maybe_int(column),
            None => Ok(None),
        }
    }

    fn get<T: TryGetable>(&self, column: &str) -> Result<T> {
        self.0
            .try_get("", column)
            .map_err(|source| Error::Column { column: column.to_owned(), source })
    }
}

fn null(column: &str) -> Error {
    Error::Column { column: column.to_owned(), source: DbErr::Type("it is NULL".into()) }
}
