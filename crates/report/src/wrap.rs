//! Lines that fit.

/// A paragraph with all lines indented.
pub fn paragraph(text: &str, width: usize, first: usize, rest: usize) -> String {
    let start = " ".repeat(first);
    let body = fill(text, width.saturating_sub(first), width.saturating_sub(rest));
    let mut lines = body.into_iter();
    let mut all = format!("{start}{}\n", lines.next().unwrap_or_default());
    for line in lines {
        all.push_str(&format!("{}{line}\n", " ".repeat(rest)));
    }
    all
}

/// The lines of a text, the first and the others of different width. Not broken at non-breaking spaces, which become ordinary
/// ones.
pub fn fill(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let width = if lines.len() == 1 { first } else { rest };
        let last = lines.last_mut().expect("never empty");
        let gap = usize::from(!last.is_empty());
        if gap == 1 && last.chars().count() + gap + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            last.push_str(if gap == 1 { " " } else { "" });
            last.push_str(word);
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filled() {
        assert_eq!(fill("one two three", 7, 5), ["one two", "three"]);
        assert_eq!(fill("extraordinary", 4, 4), ["extraordinary"]);
        assert_eq!(fill("", 4, 4), [""]);
    }

    #[test]
    fn paragraphs_hang() {
        assert_eq!(paragraph("one two three four", 12, 2, 4), "  one two\n    three\n    four\n");
    }
}
