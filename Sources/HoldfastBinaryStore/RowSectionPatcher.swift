import HoldfastStore

/// Updates a section of rows in which few rows were changed or deleted.
///
/// The result has the same bytes as if ``RowSectionEncoder`` had encoded all rows. Columns without changes are copied. For the others,
/// unchanged rows are taken from the old section, without reading the rows themselves.
final class RowSectionPatcher {
  private let kinds: [CellKind]
  private let buffer: RowSectionBuffer
  /// The number of rows before and after.
  private var count = 0
  private var newCount = 0
  private var changes: ArraySlice<RowChange> = []
  /// The position in the section of each change, and of each deleted row.
  private var places: [Int] = []
  private var gone: [Int] = []
  /// For each row, whether it has a value in the current column. Unused while `isFull`.
  private var isPresent: [Bool] = []
  private var isFull = true
  /// For each change, the range of its old value's bytes in the current column.
  private var cuts: [(start: Int, end: Int)] = []

  init(_ entity: ManagedObjectModel.Entity, _ buffer: RowSectionBuffer) {
    kinds = entity.layout.kinds
    self.buffer = buffer
  }

  /// An updated section.
  struct Patched {
    /// Valid until the buffer begins the next section.
    var bytes: UnsafeRawBufferPointer
    var count: Int
    var keys: ClosedRange<Int64>
  }

  /// - Parameters:
  ///   - section: A section made by ``RowSectionEncoder`` or this type.
  ///   - count: The number of its rows.
  ///   - first: The key of its first row.
  ///   - changes: The changes to its rows, sorted by key.
  /// - Returns: Nil if the rows have to be encoded instead: no row is left, a changed key isn't in the section, keys have eight
  ///   bytes, a column needs another form, values are in external files, or the bytes aren't a valid section with this number of
  ///   rows.
  func patch(_ section: UnsafeRawBufferPointer, count: Int, first: Int64, _ changes: ArraySlice<RowChange>) -> Patched? {
    (self.count, self.changes) = (count, changes)
    defer { self.changes = [] }
    var reader = ByteReader(section)
    guard reader.number(UInt8.self) == 4, let keys = reader.take(4 * count), findPlaces(keys, first) else { return nil }
    newCount = count - gone.count
    if newCount == 0 { return nil }
    let slots = 0..<SlotIndex(kinds.count)
    let added = changes.reduce(0) { sum, change in
      sum + slots.reduce(0) { $0 + (kinds[$1] == .bytes ? change.new?.bytes($1).count ?? 0 : 0) }
    }
    buffer.begin(rowCount: count, columnCount: kinds.count, bytesCount: section.count + added)
    if isPresent.count < count { isPresent = Array(repeating: true, count: count) }
    let range = putKeys(keys, first)
    guard takeNumbers(&reader) else { return nil }
    putNumbers(presentCount: newCount) { $0.version.rawValue }
    for slot in slots {
      let start = reader.offset
      guard let isUntouched = isUntouched(slot, &reader) else { return nil }
      if isUntouched { buffer.put(UnsafeRawBufferPointer(rebasing: section[start..<reader.offset])) }
    }
    return reader.remaining == 0 ? Patched(bytes: buffer.bytes, count: newCount, keys: range) : nil
  }

  // MARK: Keys

  /// - Returns: Whether all changes are of rows in the section.
  private func findPlaces(_ keys: UnsafeRawBufferPointer, _ first: Int64) -> Bool {
    places.removeAll(keepingCapacity: true)
    gone.removeAll(keepingCapacity: true)
    var low = 0
    for change in changes {
      var end = count
      while low < end {
        let middle = (low + end) / 2
        if key(keys, middle, first) < change.key { low = middle + 1 } else { end = middle }
      }
      guard low < count, key(keys, low, first) == change.key else { return false }
      places.append(low)
      if change.new == nil { gone.append(low) }
      low += 1
    }
    return true
  }

  @inline(__always) private func key(_ keys: UnsafeRawBufferPointer, _ place: Int, _ first: Int64) -> Int64 {
    first + Int64(UInt32(littleEndian: keys.loadUnaligned(fromByteOffset: 4 * place, as: UInt32.self)))
  }

  private func putKeys(_ keys: UnsafeRawBufferPointer, _ first: Int64) -> ClosedRange<Int64> {
    let numbers = buffer.numbers
    for index in 0..<count { numbers[index] = key(keys, index, first) }
    removeGone(numbers)
    buffer.put(4 as UInt8)
    for index in 0..<newCount { buffer.put(UInt32(truncatingIfNeeded: numbers[index] &- numbers[0])) }
    return numbers[0]...numbers[newCount - 1]
  }

  // MARK: Columns

  /// Reads a column, and writes it if it has changes.
  ///
  /// - Returns: Whether it has no changes and can be copied; nil if the rows have to be encoded instead.
  private func isUntouched(_ slot: SlotIndex, _ reader: inout ByteReader) -> Bool? {
    let hasChanged = !gone.isEmpty || changes.contains { $0.new?.differs(from: $0.old, slot, kinds[slot]) == true }
    guard let form = reader.number(UInt8.self), form <= 2 else { return nil }
    if form == 0 {
      if hasChanged && changes.contains(where: { $0.new?.isPresent(slot) == true }) { return nil }
      return true
    }
    guard takePresence(&reader, isPartial: form == 2) else { return nil }
    switch kinds[slot] {
    case .integer, .key:
      guard takeNumbers(&reader) else { return nil }
      if !hasChanged { return true }
      let present = putPresence(slot)
      if present > 0 { putNumbers(presentCount: present) { $0.isPresent(slot) ? $0.integer(slot) : 0 } }
      return false
    case .real: return isUntouchedReal(slot, &reader, hasChanged)
    case .bytes: return isUntouchedBytes(slot, &reader, hasChanged)
    }
  }

  private func takePresence(_ reader: inout ByteReader, isPartial: Bool) -> Bool {
    isFull = !isPartial
    if isFull { return true }
    return isPresent.withUnsafeMutableBufferPointer { isPresent in
      guard let bits = reader.take((count + 7) / 8) else { return false }
      for index in 0..<count { isPresent[index] = bits[index >> 3] & 1 << UInt8(index & 7) != 0 }
      return true
    }
  }

  /// Updates ``isPresent`` for the new rows, unless all have a value, and writes the presence.
  ///
  /// - Returns: The number of rows with a value. If it is 0, the column has no further content.
  private func putPresence(_ slot: SlotIndex) -> Int {
    if isFull && changes.allSatisfy({ $0.new?.isPresent(slot) != false }) {
      buffer.put(1 as UInt8)
      return newCount
    }
    if isFull { for place in 0..<count { isPresent[place] = true } }
    for (place, change) in zip(places, changes) { if let new = change.new { isPresent[place] = new.isPresent(slot) } }
    let present = isPresent.withUnsafeMutableBufferPointer { isPresent in
      if let base = isPresent.baseAddress { removeGone(base) }
      return isPresent[..<newCount].reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    buffer.put(present == 0 ? 0 : present == newCount ? 1 : 2 as UInt8)
    if present > 0 && present < newCount { buffer.putBits(newCount) { isPresent[$0] } }
    return present
  }

  // MARK: Numbers

  /// Decodes a column of numbers into the numbers of the buffer, one per old row.
  private func takeNumbers(_ reader: inout ByteReader) -> Bool {
    guard let width = reader.number(UInt8.self), let low = reader.number(Int64.self), let bytes = reader.take(count * Int(width)) else {
      return false
    }
    switch width {
    case 0: buffer.numbers.update(repeating: low, count: count)
    case 1: take(bytes, low, as: UInt8.self)
    case 2: take(bytes, low, as: UInt16.self)
    case 4: take(bytes, low, as: UInt32.self)
    case 8: take(bytes, low, as: UInt64.self)
    default: return false
    }
    return true
  }

  @inline(__always) private func take<Number: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, _ low: Int64, as: Number.Type) {
    let (numbers, size) = (buffer.numbers, MemoryLayout<Number>.size)
    for index in 0..<count {
      let number = Number(littleEndian: bytes.loadUnaligned(fromByteOffset: index &* size, as: Number.self))
      numbers[index] = low &+ Int64(truncatingIfNeeded: number)
    }
  }

  /// Writes the decoded numbers, with the new values of changed rows.
  ///
  /// - Parameter presentCount: The number of new rows with a value, according to ``isPresent``. At least 1.
  @inline(__always) private func putNumbers(presentCount: Int, _ value: (RowPointer) -> Int64) {
    let numbers = buffer.numbers
    for (place, change) in zip(places, changes) { if let new = change.new { numbers[place] = value(new) } }
    removeGone(numbers)
    var (low, high) = (Int64.max, Int64.min)
    if presentCount == newCount {
      for index in 0..<newCount { (low, high) = (min(low, numbers[index]), max(high, numbers[index])) }
    } else {
      for index in 0..<newCount where isPresent[index] { (low, high) = (min(low, numbers[index]), max(high, numbers[index])) }
      let least = RowSectionBuffer.form(low...high).least
      for index in 0..<newCount where !isPresent[index] { numbers[index] = least }
    }
    buffer.putNumbers(newCount, low...high)
  }

  /// Closes the gaps left by deleted rows.
  @inline(__always) private func removeGone<Element>(_ elements: UnsafeMutablePointer<Element>) {
    guard var end = gone.first else { return }
    for (index, place) in gone.enumerated() {
      let next = index + 1 < gone.count ? gone[index + 1] : count
      (elements + end).update(from: elements + place + 1, count: next - place - 1)
      end += next - place - 1
    }
  }

  // MARK: Floating-point numbers

  private func isUntouchedReal(_ slot: SlotIndex, _ reader: inout ByteReader, _ hasChanged: Bool) -> Bool? {
    guard let form = reader.number(UInt8.self).flatMap({ RealForm(rawValue: $0) }) else { return nil }
    switch form {
    case .whole:
      guard takeNumbers(&reader), changes.allSatisfy({ $0.new.map { RealForm.isWhole($0.real(slot)) } ?? true }) else { return nil }
      if !hasChanged { return true }
      let present = putPresence(slot)
      if present == 0 { return false }
      buffer.put(form.rawValue)
      putNumbers(presentCount: present) { Int64($0.real(slot)) }
    case .single, .double:
      let size = form == .single ? 4 : 8
      guard let numbers = reader.take(size * count) else { return nil }
      if !hasChanged { return true }
      if putPresence(slot) == 0 { return false }
      buffer.put(form.rawValue)
      let start = buffer.byteCount
      put(numbers, size) { form == .single ? buffer.put(Float($0.real(slot)).bitPattern) : buffer.put($0.real(slot).bitPattern) }
      // If all values are integers now, they need the other form.
      if form == .double && areWhole(UnsafeRawBufferPointer(rebasing: buffer.bytes[start...])) { return nil }
    }
    return false
  }

  private func areWhole(_ numbers: UnsafeRawBufferPointer) -> Bool {
    for offset in stride(from: 0, to: numbers.count, by: 8) {
      let bits = UInt64(littleEndian: numbers.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      if !RealForm.isWhole(Double(bitPattern: bits)) { return false }
    }
    return true
  }

  /// Writes elements of a fixed size, with the new values of changed rows.
  @inline(__always) private func put(_ elements: UnsafeRawBufferPointer, _ size: Int, _ putNew: (RowPointer) -> Void) {
    var next = 0
    for (place, change) in zip(places, changes) {
      buffer.put(UnsafeRawBufferPointer(rebasing: elements[(next * size)..<(place * size)]))
      if let new = change.new { putNew(new) }
      next = place + 1
    }
    buffer.put(UnsafeRawBufferPointer(rebasing: elements[(next * size)...]))
  }

  // MARK: Text and bytes

  private func isUntouchedBytes(_ slot: SlotIndex, _ reader: inout ByteReader, _ hasChanged: Bool) -> Bool? {
    guard reader.number(UInt8.self) == 0, !changes.contains(where: { $0.new?.isExternal(slot) == true }), takeNumbers(&reader),
      let values = reader.take(findCuts())
    else { return nil }
    if !hasChanged { return true }
    let present = putPresence(slot)
    if present == 0 { return false }
    buffer.put(0 as UInt8)
    putNumbers(presentCount: present) { $0.isPresent(slot) ? Int64($0.bytes(slot).count) : 0 }
    var next = 0
    for (cut, change) in zip(cuts, changes) {
      buffer.put(UnsafeRawBufferPointer(rebasing: values[next..<cut.start]))
      if let new = change.new, new.isPresent(slot) { buffer.put(new.bytes(slot)) }
      next = cut.end
    }
    buffer.put(UnsafeRawBufferPointer(rebasing: values[next...]))
    return false
  }

  /// Finds the positions of the changed rows' values from the decoded lengths.
  ///
  /// - Returns: The number of bytes of all values, or -1 if a length is invalid.
  private func findCuts() -> Int {
    cuts.removeAll(keepingCapacity: true)
    let numbers = buffer.numbers
    var offset = 0, next = 0, areLengths = true
    isPresent.withUnsafeBufferPointer { isPresent in
      @inline(__always) func pass(_ rows: Range<Int>) {
        var (sum, all): (Int64, Int64) = (0, 0)
        if isFull {
          for row in rows { (sum, all) = (sum &+ numbers[row], all | numbers[row]) }
        } else {
          for row in rows where isPresent[row] { (sum, all) = (sum &+ numbers[row], all | numbers[row]) }
        }
        offset &+= Int(sum)
        if UInt64(bitPattern: all) > UInt64(UInt32.max) { areLengths = false }
      }
      for place in places {
        pass(next..<place)
        let start = offset
        pass(place..<place + 1)
        cuts.append((start, offset))
        next = place + 1
      }
      pass(next..<count)
    }
    return areLengths ? offset : -1
  }
}
