//! Statements with `:name` parameters and `{tokens}`, translated for the database that answers.

use chrono::SecondsFormat;

use crate::{Dialect, Error, Instant, Result};

/// A bound value.
pub type Value = sea_orm::Value;

/// A statement's text: one for all databases, or one apart for MariaDB where it is forced or
/// measured (`UPDATE … JOIN` against `UPDATE … FROM`).
#[derive(Debug, Clone, Copy)]
pub enum Text {
    /// The same text everywhere.
    Same(&'static str),
    /// MariaDB needs its own.
    Forked {
        /// SQLite and PostgreSQL.
        standard: &'static str,
        /// MariaDB.
        mariadb: &'static str,
    },
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Text {
        Text::Same(text)
    }
}

/// What can be bound to a parameter.
pub trait Bind {
    /// The value that goes over the wire.
    fn bind(self) -> Value;
}

macro_rules! bind_as {
    ($($type:ty => $make:expr;)*) => {$(
        impl Bind for $type {
            fn bind(self) -> Value {
                let make: fn($type) -> Value = $make;
                make(self)
            }
        }
    )*};
}

bind_as! {
    i16 => |v| Value::BigInt(Some(v.into()));
    i32 => |v| Value::BigInt(Some(v.into()));
    i64 => |v| Value::BigInt(Some(v));
    u32 => |v| Value::BigInt(Some(v.into()));
    bool => |v| Value::BigInt(Some(v.into()));
    String => |v| Value::String(Some(v));
    &str => |v| Value::String(Some(v.to_owned()));
    &String => |v| Value::String(Some(v.clone()));
    Instant => |v| Value::ChronoDateTimeUtc(Some(v));
    Option<i64> => Value::BigInt;
    Option<i32> => |v| Value::BigInt(v.map(i64::from));
    Option<String> => Value::String;
    Option<&str> => |v| Value::String(v.map(str::to_owned));
    Option<Instant> => Value::ChronoDateTimeUtc;
    Value => |v| v;
}

/// A statement with its parameters.
#[derive(Debug, Clone)]
pub struct Query {
    text: Source,
    parameters: Vec<(&'static str, Parameter)>,
}

#[derive(Debug, Clone)]
enum Source {
    Fixed(Text),
    Built(String),
}

#[derive(Debug, Clone)]
enum Parameter {
    One(Value),
    List(Vec<Value>),
    Rows(Vec<Vec<Value>>),
}

impl Query {
    /// A statement without parameters yet.
    pub fn new(text: impl Into<Text>) -> Query {
        Query { text: Source::Fixed(text.into()), parameters: Vec::new() }
    }

    /// A statement put together at run time from our own constants. Never from input.
    pub fn built(text: String) -> Query {
        Query { text: Source::Built(text), parameters: Vec::new() }
    }

    /// Binds one parameter.
    #[must_use]
    pub fn bind(mut self, name: &'static str, value: impl Bind) -> Query {
        self.parameters.push((name, Parameter::One(value.bind())));
        self
    }

    /// Binds a list, for `IN :name`. An empty list becomes `(NULL)`, which no row equals.
    #[must_use]
    pub fn bind_list<V: Bind>(
        mut self,
        name: &'static str,
        values: impl IntoIterator<Item = V>,
    ) -> Query {
        let values = values.into_iter().map(Bind::bind).collect();
        self.parameters.push((name, Parameter::List(values)));
        self
    }

    /// Binds whole rows, for `VALUES :name`. The caller bounds their number: a statement takes
    /// 32 766 values on SQLite and 65 535 on the other two.
    #[must_use]
    pub fn bind_rows(mut self, name: &'static str, rows: Vec<Vec<Value>>) -> Query {
        self.parameters.push((name, Parameter::Rows(rows)));
        self
    }

    /// The same statement with the same values and something before it, such as `EXPLAIN`.
    #[must_use]
    pub fn prefixed(&self, dialect: Dialect, prefix: &str) -> Query {
        Query {
            text: Source::Built(format!("{prefix} {}", self.text(dialect))),
            parameters: self.parameters.clone(),
        }
    }

    /// What the driver is given: the statement's text with the database's placeholders, and the
    /// values in their order.
    ///
    /// # Errors
    /// An unbound parameter or an unknown token.
    pub fn translated(&self, dialect: Dialect) -> Result<(String, Vec<Value>)> {
        let statement = self.statement(dialect)?;
        let values = statement.values.map(|values| values.0);
        Ok((statement.sql, values.unwrap_or_default()))
    }

    /// The text as it was written, for this database.
    pub fn text(&self, dialect: Dialect) -> &str {
        match &self.text {
            Source::Built(text) => text,
            Source::Fixed(Text::Same(text)) => text,
            Source::Fixed(Text::Forked { standard, mariadb }) => match dialect {
                Dialect::MariaDb => mariadb,
                Dialect::Sqlite | Dialect::Postgres => standard,
            },
        }
    }

    /// The driver's statement.
    pub(crate) fn statement(&self, dialect: Dialect) -> Result<sea_orm::Statement> {
        let mut translation =
            Translation { query: self, dialect, sql: String::new(), values: vec![] };
        translation.run(self.text(dialect))?;
        let backend = dialect.backend();
        Ok(sea_orm::Statement::from_sql_and_values(backend, translation.sql, translation.values))
    }
}

/// One walk over a statement's text.
struct Translation<'q> {
    query: &'q Query,
    dialect: Dialect,
    sql: String,
    values: Vec<Value>,
}

impl Translation<'_> {
    fn run(&mut self, text: &str) -> Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(['\'', ':', '{']) {
            self.sql.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = match rest.as_bytes()[0] {
                b'\'' => self.literal(rest),
                b'{' => self.token(rest)?,
                _ => self.parameter(rest)?,
            };
        }
        self.sql.push_str(rest);
        Ok(())
    }

    fn literal<'t>(&mut self, rest: &'t str) -> &'t str {
        let end = rest[1..].find('\'').map_or(rest.len(), |at| at + 2);
        self.sql.push_str(&rest[..end]);
        &rest[end..]
    }

    fn token<'t>(&mut self, rest: &'t str) -> Result<&'t str> {
        let end = rest.find('}').ok_or_else(|| self.broken("an unclosed {token}"))?;
        let token = &rest[1..end];
        let stands_for = self
            .dialect
            .token(token)
            .ok_or_else(|| self.broken(&format!("the unknown token {{{token}}}")))?;
        self.sql.push_str(stands_for);
        Ok(&rest[end + 1..])
    }

    fn parameter<'t>(&mut self, rest: &'t str) -> Result<&'t str> {
        if let Some(after) = rest.strip_prefix("::") {
            self.sql.push_str("::");
            return Ok(after);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest[1..].find(|c| !is_name(c)).map_or(rest.len(), |at| at + 1);
        let name = &rest[1..end];
        let found = self.query.parameters.iter().find(|(known, _)| *known == name);
        match found {
            Some((_, Parameter::One(value))) => self.push(value),
            Some((_, Parameter::List(values))) => self.push_list(values),
            Some((_, Parameter::Rows(rows))) => self.push_rows(rows),
            None => return Err(self.broken(&format!("the unbound parameter :{name}"))),
        }
        Ok(&rest[end..])
    }

    fn push(&mut self, value: &Value) {
        self.values.push(match (self.dialect, value) {
            (Dialect::Sqlite, Value::ChronoDateTimeUtc(Some(instant))) => sortable(*instant).bind(),
            // The driver would bind an instant as TIMESTAMP, which ends in January 2038; the
            // columns are DATETIME(6), and the session's zone is UTC.
            (Dialect::MariaDb, Value::ChronoDateTimeUtc(instant)) => {
                Value::ChronoDateTime(instant.map(|instant| instant.naive_utc()))
            }
            _ => value.clone(),
        });
        match self.dialect {
            Dialect::Postgres => {
                self.sql.push('$');
                self.sql.push_str(&self.values.len().to_string());
            }
            Dialect::Sqlite | Dialect::MariaDb => self.sql.push('?'),
        }
    }

    fn push_list(&mut self, values: &[Value]) {
        if values.is_empty() {
            self.sql.push_str("(NULL)");
            return;
        }
        self.sql.push('(');
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.sql.push_str(", ");
            }
            self.push(value);
        }
        self.sql.push(')');
    }

    fn push_rows(&mut self, rows: &[Vec<Value>]) {
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                self.sql.push_str(", ");
            }
            self.push_list(row);
        }
    }

    fn broken(&self, what: &str) -> Error {
        Error::Statement {
            statement: self.sql.clone(),
            source: sea_orm::DbErr::Custom(format!("the statement holds {what}")),
        }
    }
}

/// An instant as SQLite stores it: text that sorts and compares like the instant. The driver would
/// write three digits where they are enough, and `….123+00:00` is not equal to `….123000+00:00`.
fn sortable(instant: Instant) -> String {
    let whole = instant.timestamp_subsec_micros() == 0;
    let digits = if whole { SecondsFormat::Secs } else { SecondsFormat::Micros };
    instant.to_rfc3339_opts(digits, false)
}

/// A statement with its parameters: `sql!("… WHERE id = :id", id = 7)`.
#[macro_export]
macro_rules! sql {
    ($text:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::Query::new($text)$(.bind(stringify!($name), $value))*
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(query: &Query, dialect: Dialect) -> String {
        query.statement(dialect).unwrap().sql
    }

    #[test]
    fn parameters_become_what_the_driver_expects() {
        let query = sql!("SELECT a FROM t WHERE x = :x AND y = ':x' AND z = :x", x = 7_i64);
        assert_eq!(
            text(&query, Dialect::Postgres),
            "SELECT a FROM t WHERE x = $1 AND y = ':x' AND z = $2"
        );
        assert_eq!(
            text(&query, Dialect::Sqlite),
            "SELECT a FROM t WHERE x = ? AND y = ':x' AND z = ?"
        );
    }

    #[test]
    fn a_list_becomes_one_placeholder_a_value_and_an_empty_one_matches_nothing() {
        let query = Query::new("… IN :ids").bind_list("ids", [1_i64, 2]);
        assert_eq!(text(&query, Dialect::Postgres), "… IN ($1, $2)");
        let none = Query::new("… IN :ids").bind_list("ids", Vec::<i64>::new());
        assert_eq!(text(&none, Dialect::MariaDb), "… IN (NULL)");
    }

    #[test]
    fn rows_become_one_parenthesis_a_row() {
        let row = |a: i64, b: &str| vec![a.bind(), b.bind()];
        let rows = vec![row(1, "x"), row(2, "y")];
        let query = Query::new("INSERT INTO t (a, b) VALUES :rows").bind_rows("rows", rows);
        assert_eq!(
            text(&query, Dialect::Postgres),
            "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4)"
        );
    }

    #[test]
    fn an_unbound_parameter_or_an_unknown_token_is_refused_before_it_reaches_the_database() {
        assert!(sql!("SELECT :missing").statement(Dialect::Sqlite).is_err());
        assert!(sql!("SELECT 1 {for_updat}").statement(Dialect::Sqlite).is_err());
    }

    #[test]
    fn tokens_stand_for_what_the_databases_force_apart() {
        let query = sql!("{insert_ignore} INTO t (a) VALUES (1) {or_ignore}");
        assert_eq!(text(&query, Dialect::MariaDb), "INSERT IGNORE INTO t (a) VALUES (1) ");
        assert!(text(&query, Dialect::Postgres).ends_with("ON CONFLICT DO NOTHING"));
    }
}
