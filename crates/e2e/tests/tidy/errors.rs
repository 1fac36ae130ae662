//! Every stable error code has a page that says what to do about it, and every page has a code.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use syn::visit::{self, Visit};

use crate::source::{Source, assert_none, repository};
use crate::syntax::parse;

const PAGES: &str = "docs/errors/";

/// The codes that functions named `code` answer with, and where each is declared first.
fn codes(sources: &[Source]) -> BTreeMap<String, String> {
    let mut codes = BTreeMap::new();
    for source in sources.iter().filter(|source| is_program(source)) {
        let mut answers = Answers {
            inside: false,
            found: Vec::new(),
        };
        answers.visit_file(&parse(source));
        for (line, code) in answers.found {
            if let Entry::Vacant(free) = codes.entry(code) {
                let what = source.breach(line, format!("code {} has no page", free.key()));
                free.insert(what);
            }
        }
    }
    codes
}

fn is_program(source: &Source) -> bool {
    source.is("rs") && source.path.contains("/src/")
}

/// Walks a file for what `fn code` answers: the strings that are a match arm's or the function's
/// own value. The patterns of a match are no answers.
struct Answers {
    inside: bool,
    found: Vec<(usize, String)>,
}

impl Answers {
    fn within(
        &mut self,
        signature: &syn::Signature,
        block: &syn::Block,
        walk: impl FnOnce(&mut Self),
    ) {
        let outside = std::mem::replace(&mut self.inside, signature.ident == "code");
        if self.inside {
            self.answer_of(block);
        }
        walk(self);
        self.inside = outside;
    }

    fn answer_of(&mut self, block: &syn::Block) {
        if let Some(syn::Stmt::Expr(value, None)) = block.stmts.last() {
            self.answer(value);
        }
    }

    fn answer(&mut self, value: &syn::Expr) {
        match value {
            syn::Expr::Block(inner) => self.answer_of(&inner.block),
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => {
                let code = text.value();
                if is_code(&code) {
                    self.found.push((text.span().start().line, code));
                }
            }
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Answers {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.within(&item.sig, &item.block, |walk| {
            visit::visit_item_fn(walk, item)
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.within(&item.sig, &item.block, |walk| {
            visit::visit_impl_item_fn(walk, item)
        });
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if self.inside {
            self.answer(&arm.body);
        }
        visit::visit_arm(self, arm);
    }
}

/// Stored words (`PENDING`) and numbers are not error codes.
fn is_code(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter == '-')
}

fn unmatched(sources: &[Source]) -> Vec<String> {
    let codes = codes(sources);
    let pages: Vec<&str> = sources
        .iter()
        .filter_map(|source| source.path.strip_prefix(PAGES)?.strip_suffix(".md"))
        .filter(|page| *page != "README")
        .collect();
    let without_page = codes
        .iter()
        .filter(|(code, _)| !pages.contains(&code.as_str()))
        .map(|(_, what)| what.clone());
    let without_code = pages
        .iter()
        .filter(|page| !codes.contains_key(**page))
        .map(|page| format!("{PAGES}{page}.md:1: no code of this name"));
    without_page.chain(without_code).collect()
}

#[test]
fn every_error_code_has_a_page_and_every_page_has_a_code() {
    assert_none(unmatched(&repository()));
}

#[test]
fn a_code_without_a_page_and_a_page_without_a_code_are_found() {
    let code = "impl Error {
        fn code(&self) -> &'static str {
            match self.kind.as_str() {
                \"not-an-answer\" => \"bill-taken\",
                Kind::Long { .. } => {
                    \"order-closed\"
                }
                Kind::Stored => \"PENDING\",
                Kind::Other(inner) => inner.code(),
            }
        }
        fn title(&self) -> &'static str { match self { _ => \"not-a-code\" } }
    }
    impl Gone { fn code(&self) -> &'static str { \"order-gone\" } }";
    let found = unmatched(&[
        Source::new("crates/a/src/error.rs", code),
        Source::new("docs/errors/README.md", ""),
        Source::new("docs/errors/order-gone.md", ""),
        Source::new("docs/errors/left-over.md", ""),
    ]);
    assert_eq!(
        found,
        [
            "crates/a/src/error.rs:4: code bill-taken has no page",
            "crates/a/src/error.rs:6: code order-closed has no page",
            "docs/errors/left-over.md:1: no code of this name",
        ]
    );
}
