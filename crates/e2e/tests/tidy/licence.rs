//! Licence expressions, read as far as crates write them: `(MIT OR Apache-2.0) AND Unicode-3.0`,
//! and the older `MIT/Apache-2.0`.

/// Whether one can take the crate under licences of the list alone. A licence with an exception
/// (`Apache-2.0 WITH LLVM-exception`) counts as its licence: an exception only gives more.
pub fn is_allowed(expression: &str, list: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, list };
    reader.either() && reader.words.is_empty()
}

struct Reader<'a> {
    words: &'a [&'a str],
    list: &'a [&'a str],
}

impl Reader<'_> {
    fn either(&mut self) -> bool {
        let mut allowed = self.both();
        while self.take("OR") {
            // Both sides are read to their ends, also when the first is enough.
            let other = self.both();
            allowed = allowed || other;
        }
        allowed
    }

    fn both(&mut self) -> bool {
        let mut allowed = self.one();
        while self.take("AND") {
            let other = self.one();
            allowed = allowed && other;
        }
        allowed
    }

    fn one(&mut self) -> bool {
        if self.take("(") {
            let allowed = self.either();
            return self.take(")") && allowed;
        }
        let Some((licence, rest)) = self.words.split_first() else {
            return false;
        };
        self.words = rest;
        if self.take("WITH") {
            self.words = self.words.get(1..).unwrap_or_default();
        }
        self.list.contains(licence)
    }

    fn take(&mut self, word: &str) -> bool {
        let Some((first, rest)) = self.words.split_first() else {
            return false;
        };
        let is_it = *first == word;
        if is_it {
            self.words = rest;
        }
        is_it
    }
}

#[test]
fn a_choice_needs_one_side_and_a_sum_needs_both() {
    let allowed = |expression| is_allowed(expression, &["MIT", "Apache-2.0"]);
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/GPL-3.0",
        "Apache-2.0 / MIT",
        "Apache-2.0 WITH LLVM-exception",
        "(GPL-3.0 OR MIT) AND Apache-2.0",
        "GPL-3.0 AND ISC OR MIT",
    ] {
        assert!(allowed(good), "{good} is refused");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR GPL-3.0) AND ISC",
        "GPL-3.0 WITH MIT",
        "(MIT",
        "MIT MIT",
    ] {
        assert!(!allowed(bad), "{bad} is let in");
    }
}
