/// Gathers small pieces so that they reach the disk in large ones. The memory is taken when it is used first.
struct WriteBuffer {
  /// How many bytes it holds: the size of the writes to the system.
  static let capacity = 1 << 20

  private var memory: UnsafeMutableRawBufferPointer?
  private var count = 0

  var isEmpty: Bool { count == 0 }
  var isFull: Bool { count == Self.capacity }
  /// How many more bytes it takes.
  var room: Int { Self.capacity - count }
  /// The bytes that are in it.
  var filled: UnsafeRawBufferPointer {
    memory.map { UnsafeRawBufferPointer(rebasing: $0[..<count]) } ?? UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// The memory behind the bytes that are in it.
  var free: UnsafeMutableRawBufferPointer {
    mutating get {
      let memory = memory ?? .allocate(byteCount: Self.capacity, alignment: 16)
      self.memory = memory
      return UnsafeMutableRawBufferPointer(rebasing: memory[count...])
    }
  }

  /// Takes as many bytes as there is room for, and returns how many.
  mutating func append(_ bytes: UnsafeRawBufferPointer) -> Int {
    let taken = min(room, bytes.count)
    free.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
    count += taken
    return taken
  }

  /// Counts bytes that were put into ``free``.
  mutating func advance(_ added: Int) {
    precondition((0...room).contains(added), "More bytes were put into the buffer than it has room for.")
    count += added
  }

  mutating func removeAll() { count = 0 }

  func deallocate() { memory?.deallocate() }
}
