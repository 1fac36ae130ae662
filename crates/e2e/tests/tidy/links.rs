//! Every link between the documents and the repository leads somewhere.

use std::path::{Component, Path, PathBuf};

use crate::source::{Source, assert_none, repository, root};

/// A link in a document: its line, what it is called, where it leads.
#[derive(Debug, PartialEq)]
pub struct Link {
    pub line: usize,
    pub label: String,
    pub target: String,
}

impl Link {
    /// The target as a path, its anchor cut; none when it leads to the web or within the page.
    pub fn path(&self) -> Option<&str> {
        let is_web = self.target.contains("://") || self.target.starts_with("mailto:");
        let path = self.target.split(['#', '?']).next().unwrap_or("");
        (!is_web && !path.is_empty()).then_some(path)
    }
}

/// The links of a Markdown text: inline, by reference, and in HTML. Code is not read.
pub fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    let mut fence = None;
    for (index, line) in text.lines().enumerate() {
        let opening = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| opening.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => links_of_line(index + 1, line, &mut found),
        }
    }
    found
}

fn links_of_line(number: usize, line: &str, found: &mut Vec<Link>) {
    let masked = without_code(line);
    for (at, _) in masked.match_indices("](") {
        let label = masked[..at].rfind('[').map_or("", |open| &line[open + 1..at]);
        let target = target(&line[at + 2..]);
        found.push(Link { line: number, label: label.to_owned(), target });
    }
    if let Some((label, rest)) = masked.strip_prefix('[').and_then(|line| line.split_once("]: "))
        && !label.starts_with('^')
    {
        let target = target(rest);
        found.push(Link { line: number, label: label.to_owned(), target });
    }
    for attribute in ["href=\"", "src=\""] {
        for (at, _) in masked.match_indices(attribute) {
            let target = line[at + attribute.len()..].split('"').next().unwrap_or("").to_owned();
            found.push(Link { line: number, label: String::new(), target });
        }
    }
}

/// What stands between the parentheses: `<a b>`, or up to a blank or the closing parenthesis.
fn target(rest: &str) -> String {
    if let Some(quoted) = rest.strip_prefix('<') {
        return quoted.split('>').next().unwrap_or("").to_owned();
    }
    let mut depth = 0;
    let end = rest.find(|letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth < 0 || letter.is_whitespace()
    });
    rest[..end.unwrap_or(rest.len())].to_owned()
}

/// The line with the inside of its code spans blotted out, byte for byte.
fn without_code(line: &str) -> String {
    let mut masked = line.as_bytes().to_vec();
    let mut from = 0;
    while let Some(open) = line[from..].find('`').map(|at| at + from) {
        let width = line[open..].bytes().take_while(|byte| *byte == b'`').count();
        let inside = open + width;
        let Some(length) = line[inside..].find(&"`".repeat(width)) else {
            break;
        };
        masked[inside..inside + length].fill(b'x');
        from = inside + length + width;
    }
    String::from_utf8(masked).expect("only whole code spans were replaced")
}

/// The path from the root that a link in `page` names; none when it leaves the repository.
pub fn resolve(page: &str, path: &str) -> Option<String> {
    let path = path.replace("%20", " ");
    let joined = match path.strip_prefix('/') {
        Some(from_root) => PathBuf::from(from_root),
        None => Path::new(page).parent().unwrap_or(Path::new("")).join(&path),
    };
    let mut steps: Vec<&str> = Vec::new();
    for step in joined.components() {
        match step {
            Component::ParentDir => drop(steps.pop()?),
            Component::Normal(name) => steps.push(name.to_str()?),
            _ => {}
        }
    }
    Some(steps.join("/"))
}

fn broken(source: &Source, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for link in links(&source.text) {
        let Some(path) = link.path() else { continue };
        if !resolve(&source.path, path).is_some_and(|path| exists(&path)) {
            found.push(source.breach(link.line, format!("{} leads nowhere", link.target)));
        }
    }
    found
}

#[test]
fn every_link_of_the_documents_leads_to_a_file() {
    let root = root();
    let pages = repository().into_iter().filter(|source| source.is("md"));
    let exists = |path: &str| root.join(path).exists();
    assert_none(pages.flat_map(|page| broken(&page, exists)).collect());
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let text = "[good](../README.md#top) [bad](gone.md)\n\n![bad](gone.png \"title\")\n\
        [bad]: gone/\n<a href=\"gone.html\">\n[out](../../etc/passwd) [web](https://a.example/b)\n\
        [here](#top) `[code](gone)` [`a`](/README.md#L3) ``[x](`gone)`` [写](<gone b.md>)\n\
        ```\n[code](gone)\n```\n[after](gone_(1).md)\n";
    let found = broken(&Source::new("docs/page.md", text), |path| path == "README.md");
    let lines: Vec<&str> = found.iter().map(|breach| breach.as_str()).collect();
    assert_eq!(
        lines,
        [
            "docs/page.md:1: gone.md leads nowhere",
            "docs/page.md:3: gone.png leads nowhere",
            "docs/page.md:4: gone/ leads nowhere",
            "docs/page.md:5: gone.html leads nowhere",
            "docs/page.md:6: ../../etc/passwd leads nowhere",
            "docs/page.md:7: gone b.md leads nowhere",
            "docs/page.md:11: gone_(1).md leads nowhere",
        ]
    );
}

#[test]
fn a_link_is_called_by_its_label_with_its_code_kept() {
    let link = links("| claim | [`a_sentence`](tests/a.rs#L3) |").remove(0);
    assert_eq!(link.label, "`a_sentence`");
    assert_eq!(link.path(), Some("tests/a.rs"));
}
