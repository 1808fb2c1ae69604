//! Things under way, found by number: no allocation once the run is warm.

/// A pool of things with numbers that are used again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub const fn new() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }

    /// Keeps `thing`, and returns its number.
    #[inline]
    pub fn put(&mut self, thing: &T) -> u64 {
        if let Some(number) = self.free.pop() {
            self.things[number as usize] = *thing;
            return u64::from(number);
        }
        self.things.push(*thing);
        self.things.len() as u64 - 1
    }

    /// Takes the thing of that number out.
    pub fn take(&mut self, number: u64) -> T {
        self.free.push(number as u32);
        self.things[number as usize]
    }

    /// The thing of that number.
    pub fn get(&self, number: u64) -> &T {
        &self.things[number as usize]
    }

    /// The thing of that number, to be changed.
    pub fn get_mut(&mut self, number: u64) -> &mut T {
        &mut self.things[number as usize]
    }

    /// Takes out all that is kept, in the order of their numbers.
    pub fn take_all(&mut self) -> Vec<T> {
        let mut is_free = vec![false; self.things.len()];
        self.free.drain(..).for_each(|number| is_free[number as usize] = true);
        let things = self.things.drain(..).zip(is_free);
        things.filter_map(|(thing, free)| (!free).then_some(thing)).collect()
    }

    /// How many things are kept.
    pub fn len(&self) -> usize {
        self.things.len() - self.free.len()
    }
}
