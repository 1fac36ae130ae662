//! Numbers as ECMAScript writes them (RFC 8785, section 3.2.2.3), and whether that keeps them.

use super::Reason;

/// The largest integer that is its own double and no other's: 2^53 − 1.
const MAX_SAFE: u64 = 9_007_199_254_740_991;
/// An exponent beyond which every number but zero is over or under every double.
const MAX_EXPONENT: i64 = 1_000_000;

/// A number's canonical text, rounded to a double like every canonicaliser's; −0 is 0.
///
/// # Errors
/// A number beyond every double.
pub fn canonical_number(literal: &str) -> Result<String, Reason> {
    if is_short_integer(literal) {
        return Ok(literal.to_owned());
    }
    let double: f64 = literal.parse().map_err(|_| Reason::Malformed("a number is none"))?;
    if !double.is_finite() {
        return Err(Reason::Overflow);
    }
    Ok(spell(double))
}

/// A number's canonical text, if it is the same number.
pub(super) fn exact_number(literal: &str) -> Result<String, Reason> {
    if is_short_integer(literal) {
        return Ok(literal.to_owned());
    }
    let canonical = canonical_number(literal)?;
    let value = Decimal::of(literal);
    if value.is_integer() && value.exceeds(MAX_SAFE) {
        return Err(Reason::TooLarge);
    }
    if value != Decimal::of(&canonical) {
        return Err(Reason::Rounded(canonical));
    }
    Ok(canonical)
}

/// Integers of up to 15 digits are their own text.
fn is_short_integer(literal: &str) -> bool {
    let digits = literal.strip_prefix('-').unwrap_or(literal);
    digits.len() <= 15 && literal != "-0" && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The shortest digits that make this very double, placed as ECMAScript places them.
fn spell(double: f64) -> String {
    let scientific = format!("{double:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    if digits == "0" {
        return "0".into();
    }
    let digits = even_of_two(digits, double, exponent);
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let placed = if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, part) = digits.split_at(usize::try_from(point).unwrap_or_default());
        format!("{whole}.{part}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{:+}", point - 1)
    };
    format!("{sign}{placed}")
}

/// Of two shortest texts that are equally far from the double, ECMAScript takes the even one; Rust
/// takes either (1424953923781206.25 is one of RFC 8785's examples).
fn even_of_two(digits: String, double: f64, exponent: &str) -> String {
    let Ok(number) = digits.parse::<u64>() else {
        return digits;
    };
    let count = digits.len();
    if number.is_multiple_of(2) || !expansion(double, count + 1).ends_with('5') {
        return digits;
    }
    // No double has more digits than this.
    let whole = expansion(double, 800);
    if whole[count + 1..].bytes().any(|digit| digit != b'0') {
        return digits;
    }
    let below: u64 = whole[..count].parse().unwrap_or(number);
    let even = if below.is_multiple_of(2) { below } else { below + 1 }.to_string();
    let sign = if double.is_sign_negative() { "-" } else { "" };
    let fraction = if count > 1 { format!(".{}", &even[1..]) } else { String::new() };
    let text = format!("{sign}{}{fraction}e{exponent}", &even[..1]);
    let is_same = even.len() == count && text.parse::<f64>().is_ok_and(|other| other == double);
    if is_same { even } else { digits }
}

/// The first `count` significant digits.
fn expansion(double: f64, count: usize) -> String {
    let text = format!("{:.*e}", count - 1, double.abs());
    text.split('e').next().unwrap_or_default().replace('.', "")
}

/// A decimal number: 0.digits × 10^point; zero has no digits and no sign.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: String,
    point: i64,
}

impl Decimal {
    fn of(literal: &str) -> Decimal {
        let (is_negative, rest) = match literal.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, literal),
        };
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let limit = if exponent.starts_with('-') { -MAX_EXPONENT } else { MAX_EXPONENT };
        let exponent = exponent.parse().unwrap_or(limit).clamp(-MAX_EXPONENT, MAX_EXPONENT);
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{part}");
        let without_leading = all.trim_start_matches('0');
        let leading = all.len() - without_leading.len();
        let digits = without_leading.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Decimal { is_negative: false, digits, point: 0 };
        }
        let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let point = (length(whole.len()) - length(leading)).saturating_add(exponent);
        Decimal { is_negative, digits, point }
    }

    fn is_integer(&self) -> bool {
        i64::try_from(self.digits.len()).is_ok_and(|count| count <= self.point)
    }

    /// Whether an integer is beyond ±`most`.
    fn exceeds(&self, most: u64) -> bool {
        if self.point > 19 {
            return true;
        }
        let zeros = usize::try_from(self.point).unwrap_or_default() - self.digits.len();
        let text = format!("{}{}", self.digits, "0".repeat(zeros));
        text.parse::<u64>().map_or(!text.is_empty(), |number| number > most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 8785, appendix B.
    #[test]
    fn the_published_numbers_are_spelt_as_published() {
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(spell(f64::from_bits(bits)), text, "{bits:016x}");
        }
    }

    #[test]
    fn a_number_that_its_canonical_text_would_change_is_refused() {
        let exact = |literal: &str| exact_number(literal);
        for (literal, text) in [
            ("-0", "0"),
            ("-0.0e9", "0"),
            ("1e2", "100"),
            ("0.10", "0.1"),
            ("1E-7", "1e-7"),
            ("9007199254740991", "9007199254740991"),
            ("-9007199254740991.0", "-9007199254740991"),
            ("90071992547409.91e2", "9007199254740991"),
            ("0e999999999999", "0"),
            ("1.5", "1.5"),
            ("123456789012345", "123456789012345"),
            ("1000000000000000.0", "1000000000000000"),
        ] {
            assert_eq!(exact(literal).as_deref(), Ok(text), "{literal}");
        }
        for literal in [
            "9007199254740992",
            "-9007199254740992",
            "9007199254740993",
            "9007199254740993.0",
            "9.007199254740993e15",
            "1e16",
            "1e21",
            "123456789012345678901234567890",
            "1e300",
            "90071992547409930e-1",
        ] {
            assert_eq!(exact(literal), Err(Reason::TooLarge), "{literal}");
        }
        assert_eq!(exact("1e400"), Err(Reason::Overflow));
        assert_eq!(exact("1e99999999999999999999"), Err(Reason::Overflow));
        let rounded = |text: &str| Err(Reason::Rounded(text.into()));
        assert_eq!(exact("0.1000000000000000055511151231257827"), rounded("0.1"));
        assert_eq!(exact("1e-400"), rounded("0"));
        assert_eq!(exact("9007199254740991.5"), rounded("9007199254740992"));
        assert_eq!(exact("0.30000000000000000001"), rounded("0.3"));
    }

    #[test]
    fn the_canonicaliser_alone_rounds_as_the_standard_says() {
        assert_eq!(canonical_number("1e21").as_deref(), Ok("1e+21"));
        assert_eq!(canonical_number("9007199254740993").as_deref(), Ok("9007199254740992"));
    }

    proptest! {
        #[test]
        fn a_spelt_double_is_read_as_the_same_double(double in any::<f64>()) {
            prop_assume!(double.is_finite());
            let text = spell(double);
            let again: f64 = text.parse().unwrap();
            prop_assert!(again == double, "{double:e} {text}");
            prop_assert_eq!(spell(again), text);
        }

        #[test]
        fn safe_integers_are_kept_however_spelt(
            number in -9_007_199_254_740_991_i64..=9_007_199_254_740_991,
            zeros in 0_usize..4,
        ) {
            let canonical = number.to_string();
            prop_assert_eq!(exact_number(&canonical), Ok(canonical.clone()));
            let spelt = format!("{number}{}e-{zeros}", "0".repeat(zeros));
            prop_assert_eq!(exact_number(&spelt), Ok(canonical));
        }

        #[test]
        fn what_is_accepted_has_its_own_value(
            literal in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?",
        ) {
            if let Ok(text) = exact_number(&literal) {
                prop_assert_eq!(Decimal::of(&literal), Decimal::of(&text));
            }
        }
    }
}
