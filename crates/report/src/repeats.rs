//! Shortens a list in which the same things come again and again: a thread that spins says little that is new.

/// Blocks of more steps than this are not looked for.
const LONGEST_BLOCK: usize = 8;
/// Steps that a shortening must save.
const WORTH: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    Step(usize),
    /// The last `steps` steps come `times` times more.
    Repeated {
        steps: usize,
        times: usize,
    },
    /// So many steps are not shown.
    LeftOut(usize),
}

/// Every step of a list, or its number of repetitions.
pub fn fold<T: PartialEq>(list: &[T]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < list.len() {
        match block_at(&list[at..]) {
            Some((steps, times)) => {
                items.extend((at..at + steps).map(Item::Step));
                items.push(Item::Repeated { steps, times });
                at += steps * (times + 1);
            }
            None => {
                items.push(Item::Step(at));
                at += 1;
            }
        }
    }
    items
}

/// The shortest block at the beginning that comes again often enough, and how often.
fn block_at<T: PartialEq>(list: &[T]) -> Option<(usize, usize)> {
    (1..=LONGEST_BLOCK.min(list.len() / 2)).find_map(|steps| {
        let (block, rest) = list.split_at(steps);
        let times = rest.chunks_exact(steps).take_while(|chunk| *chunk == block).count();
        (times * steps >= WORTH && times > 1).then_some((steps, times))
    })
}

/// The beginning and the end of a list that is too long.
pub fn cut(items: Vec<Item>, head: usize, tail: usize) -> Vec<Item> {
    if items.len() <= head + tail {
        return items;
    }
    let (middle, end) = items[head..].split_at(items.len() - head - tail);
    let left_out = middle.iter().map(steps_of).sum();
    [&items[..head], &[Item::LeftOut(left_out)], end].concat()
}

fn steps_of(item: &Item) -> usize {
    match item {
        Item::Step(_) => 1,
        Item::Repeated { steps, times } => steps * times,
        Item::LeftOut(steps) => *steps,
    }
}

#[cfg(test)]
mod tests {
    use super::Item::*;
    use super::*;

    #[test]
    fn blocks_are_folded() {
        assert_eq!(fold(b"aaaaaa"), [Step(0), Repeated { steps: 1, times: 5 }]);
        assert_eq!(fold(b"xababab"), [Step(0), Step(1), Step(2), Repeated { steps: 2, times: 2 }]);
        assert_eq!(fold(b"aab"), [Step(0), Step(1), Step(2)]);
        assert_eq!(fold(b""), []);
    }

    #[test]
    fn nothing_is_lost() {
        let text = b"abcabcabcabcddddddddexyxyxyxyxyf";
        let total: usize = fold(text).iter().map(steps_of).sum();
        assert_eq!(total, text.len());
        let total: usize = cut(fold(text), 2, 3).iter().map(steps_of).sum();
        assert_eq!(total, text.len());
    }

    #[test]
    fn long_lists_keep_both_ends() {
        let items: Vec<Item> = (0..10).map(Step).collect();
        assert_eq!(cut(items.clone(), 2, 1), [Step(0), Step(1), LeftOut(7), Step(9)]);
        assert_eq!(cut(items.clone(), 5, 5), items);
    }
}
