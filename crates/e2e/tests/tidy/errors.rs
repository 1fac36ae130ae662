//! Every stable error code has a page that says what to do about it, and every page has a code.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use syn::visit::{self, Visit};

use crate::source::{Source, assert_none, repository};
use crate::syntax::parse;

const PAGES: &str = "docs/errors/";

/// The codes that the program answers with, and where each is declared first: what functions named
/// `code` or `code_of` answer, the code of a `Failure`, and what work and leases fail with.
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

/// Functions that answer codes.
const ANSWERING: [&str; 2] = ["code", "code_of"];
/// Functions that are told a code: `WorkError::failed` and a lease's `fail`.
const FAILING: [&str; 2] = ["failed", "fail"];

/// Walks a file for codes. Of `fn code`: the strings that are a match arm's or the function's own
/// value; the patterns of a match are no answers. Of a failing call: its first string.
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
        let outside = {
            let answers = ANSWERING.iter().any(|name| signature.ident == name);
            std::mem::replace(&mut self.inside, answers)
        };
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
            _ => {
                self.literal(value);
            }
        }
    }

    /// Whether the value is a string; notes it if that is a code.
    fn literal(&mut self, value: &syn::Expr) -> bool {
        let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) = value
        else {
            return false;
        };
        let code = text.value();
        if is_code(&code) {
            self.found.push((text.span().start().line, code));
        }
        true
    }

    fn failing<'a>(
        &mut self,
        name: Option<&syn::Ident>,
        arguments: impl IntoIterator<Item = &'a syn::Expr>,
    ) {
        let fails = name.is_some_and(|name| FAILING.iter().any(|failing| name == failing));
        let _ = fails && arguments.into_iter().any(|argument| self.literal(argument));
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

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func {
            let name = path.path.segments.last().map(|segment| &segment.ident);
            self.failing(name, &call.args);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.failing(Some(&call.method), &call.args);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_struct(&mut self, made: &'ast syn::ExprStruct) {
        let name = made.path.segments.last().map(|segment| &segment.ident);
        if name.is_some_and(|name| name == "Failure") {
            for field in &made.fields {
                if matches!(&field.member, syn::Member::Named(name) if name == "code") {
                    self.literal(&field.expr);
                }
            }
        }
        visit::visit_expr_struct(self, made);
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

#[test]
fn a_code_that_work_a_lease_or_a_command_fails_with_is_found() {
    let code = "fn work() -> Result<(), WorkError> {
        lease.fail(&mut tx, \"bill-lost\", &message)?;
        let failure = Failure { code: \"task-lost\", message: \"not-a-code\".into() };
        failed(\"only words\");
        Err(WorkError::failed(\"lease-gone\", \"not-a-code\"))
    }
    fn code_of() -> &'static str { \"refused\" }";
    let found: Vec<String> = codes(&[Source::new("crates/a/src/work.rs", code)])
        .into_keys()
        .collect();
    assert_eq!(found, ["bill-lost", "lease-gone", "refused", "task-lost"]);
}
