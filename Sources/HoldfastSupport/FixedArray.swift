/// A fixed number of elements in memory that their owner deallocates.
///
/// Unlike elements of an `Array`, they can be changed through a constant, and access neither retains nor copies the array. Indexes are
/// checked in debug builds only.
@usableFromInline package struct FixedArray<Element> {
  @usableFromInline let base: UnsafeMutablePointer<Element>
  @usableFromInline package let count: Int

  /// Allocates memory for copies of an element.
  @inlinable package init(repeating element: Element, count: Int) {
    base = .allocate(capacity: count)
    base.initialize(repeating: element, count: count)
    self.count = count
  }

  /// Releases the elements and their memory.
  @inlinable package func deallocate() {
    base.deinitialize(count: count)
    base.deallocate()
  }

  /// The indexes of the elements.
  @inlinable package var indices: Range<Int> { 0..<count }

  /// The element at an index.
  @inlinable package subscript(index: Int) -> Element {
    @inline(__always) unsafeAddress {
      assert(indices.contains(index), "Index \(index) is out of range; the count is \(count).")
      return UnsafePointer(base + index)
    }
    @inline(__always) nonmutating unsafeMutableAddress {
      assert(indices.contains(index), "Index \(index) is out of range; the count is \(count).")
      return base + index
    }
  }
}
