/// A buffer that combines small writes. Memory is allocated on first use.
struct WriteBuffer {
  /// The capacity in bytes, which is also the size of system writes.
  static let capacity = 1 << 20

  private var memory: UnsafeMutableRawBufferPointer?
  private var count = 0

  var isEmpty: Bool { count == 0 }
  var isFull: Bool { count == Self.capacity }
  /// The number of bytes that can still be added.
  var room: Int { Self.capacity - count }
  /// The bytes in the buffer.
  var filled: UnsafeRawBufferPointer {
    memory.map { UnsafeRawBufferPointer(rebasing: $0[..<count]) } ?? UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// The unused memory.
  var free: UnsafeMutableRawBufferPointer {
    mutating get {
      let memory = memory ?? .allocate(byteCount: Self.capacity, alignment: 16)
      self.memory = memory
      return UnsafeMutableRawBufferPointer(rebasing: memory[count...])
    }
  }

  /// Appends as many bytes as there is room for, and returns their number.
  mutating func append(_ bytes: UnsafeRawBufferPointer) -> Int {
    let taken = min(room, bytes.count)
    free.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
    count += taken
    return taken
  }

  /// Adds bytes that were stored in ``free``.
  mutating func advance(_ added: Int) {
    precondition((0...room).contains(added), "More bytes were added than the buffer has room for.")
    count += added
  }

  mutating func removeAll() { count = 0 }

  func deallocate() { memory?.deallocate() }
}
