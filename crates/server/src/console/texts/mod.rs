//! What the console says, in Chinese and in English: one table a room, one line a text.

mod names;
mod pages;
mod shell;
mod why;

pub(super) use names::{role, word};
pub(super) use why::{blocker, kind_name, label_of_step, stage_name, why};

/// A language of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lang {
    /// 中文
    Zh,
    /// English
    En,
}

impl Lang {
    /// What a cookie or `Accept-Language` asks for: Chinese first where it is asked for, English
    /// otherwise.
    pub(super) fn asked(cookie: Option<&str>, accepted: Option<&str>) -> Lang {
        match cookie {
            Some("zh") => return Lang::Zh,
            Some("en") => return Lang::En,
            _ => {}
        }
        let ranges = accepted.unwrap_or_default().split(',');
        let mut best = (Lang::En, -1_i32);
        for range in ranges {
            let (tag, weight) = range.split_once(";q=").unwrap_or((range, "1"));
            let tag = tag.trim().to_lowercase();
            let lang = match tag.get(..2) {
                Some("zh") => Lang::Zh,
                Some("en") => Lang::En,
                _ => continue,
            };
            let weight = thousandths(weight);
            if weight > best.1 {
                best = (lang, weight);
            }
        }
        best.0
    }

    /// For `lang=`.
    pub(super) fn tag(self) -> &'static str {
        match self {
            Lang::Zh => "zh-CN",
            Lang::En => "en",
        }
    }

    /// One of two texts.
    pub(super) fn pick<'a>(self, zh: &'a str, en: &'a str) -> &'a str {
        match self {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }
}

/// A weight such as `0.8` in thousandths; what is none counts for nothing.
fn thousandths(text: &str) -> i32 {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits: String = part.chars().chain("000".chars()).take(3).collect();
    match (whole.parse::<i32>(), digits.parse::<i32>()) {
        (Ok(whole), Ok(part)) => (whole * 1000 + part).min(1000),
        _ => 0,
    }
}

/// `name: "中文", "English";` makes `lang.name()`.
macro_rules! texts {
    ($($name:ident: $zh:literal, $en:literal;)*) => {
        impl $crate::console::texts::Lang {
            $(pub(in $crate::console) fn $name(self) -> &'static str {
                self.pick($zh, $en)
            })*
        }
    };
}
use texts;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_comes_first_where_it_is_asked_for_and_english_otherwise() {
        let table = [
            (None, None, Lang::En),
            (None, Some("zh-CN,zh;q=0.9,en;q=0.8"), Lang::Zh),
            (None, Some("en-GB,en;q=0.9,zh;q=0.8"), Lang::En),
            (None, Some("de-DE,zh;q=0.5"), Lang::Zh),
            (None, Some("en;q=0.3, zh;q=0.31"), Lang::Zh),
            (None, Some("de"), Lang::En),
            (Some("en"), Some("zh-CN"), Lang::En),
            (Some("zh"), None, Lang::Zh),
            (Some("<b>"), Some("zh"), Lang::Zh),
        ];
        for (cookie, accepted, expected) in table {
            assert_eq!(Lang::asked(cookie, accepted), expected, "{cookie:?} {accepted:?}");
        }
    }
}
