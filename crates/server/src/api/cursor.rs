//! Where the next page of a list begins: opaque, so that nobody counts with it.

use super::fields::Fields;

/// A place in a list, as callers hold it.
pub(crate) fn cursor_of(place: i64) -> String {
    format!("p{place:x}")
}

/// The place that a cursor of ours stands for.
pub(crate) fn place_of(cursor: &str) -> Option<i64> {
    i64::from_str_radix(cursor.strip_prefix('p')?, 16).ok().filter(|place| *place > 0)
}

/// The parameter `cursor` of a query string; another's cursor is noted as a fault.
pub(super) fn asked(fields: &mut Fields) -> Option<i64> {
    let cursor = fields.maybe_text("cursor")?;
    let place = place_of(&cursor);
    if place.is_none() {
        fields.fault("cursor", "must be a nextCursor of this list");
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place_and_nothing_else_is_one() {
        for place in [1, 15, i64::MAX] {
            assert_eq!(place_of(&cursor_of(place)), Some(place));
        }
        for other in ["", "p", "p0", "15", "p-1", "pzz", "p8000000000000000"] {
            assert_eq!(place_of(other), None, "{other}");
        }
    }
}
