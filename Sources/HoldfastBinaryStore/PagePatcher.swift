import HoldfastStore

/// Makes a section of rows from the one that it replaces, in which few rows have changed or are gone: the same bytes as
/// ``PageEncoder`` makes of all rows, but columns in which nothing has changed are copied, and of the others what the section says of the
/// rows that stay; these rows themselves are not looked at.
final class PagePatcher {
  private let kinds: [CellKind]
  private let page: PageBuffer
  /// How many rows the section had, and has.
  private var count = 0
  private var newCount = 0
  private var changes: ArraySlice<RowChange> = []
  /// The place of each change among the rows of the section; those of rows that are gone once more.
  private var places: [Int] = []
  private var gone: [Int] = []
  /// Whether each row has a value in the column under way; of no account while all have.
  private var isPresent: [Bool] = []
  private var isFull = true
  /// Where the bytes of the value of each change begin in the column under way, and end.
  private var cuts: [(start: Int, end: Int)] = []

  init(_ entity: ManagedObjectModel.Entity, _ page: PageBuffer) {
    kinds = entity.layout.kinds
    self.page = page
  }

  /// A section that was made.
  struct Patched {
    /// Valid until the buffer takes the next section.
    var bytes: UnsafeRawBufferPointer
    var count: Int
    var keys: ClosedRange<Int64>
  }

  /// - Parameters:
  ///   - section: what ``PageEncoder`` or this has made.
  ///   - count: how many rows it has.
  ///   - first: the key of its first row.
  ///   - changes: ascending by key.
  /// - Returns: nil when the rows have to be encoded: nothing is left, a changed key is none of the section's, keys have eight bytes, a
  ///   column is to lie in another form, there are values in files of their own, or the bytes are no section of so many rows.
  func patch(_ section: UnsafeRawBufferPointer, count: Int, first: Int64, _ changes: ArraySlice<RowChange>) -> Patched? {
    (self.count, self.changes) = (count, changes)
    defer { self.changes = [] }
    var reader = ByteReader(section)
    guard reader.number(UInt8.self) == 4, let keys = reader.take(4 * count), findPlaces(keys, first) else { return nil }
    newCount = count - gone.count
    if newCount == 0 { return nil }
    let added = changes.reduce(0) { sum, change in
      sum + kinds.indices.reduce(0) { $0 + (kinds[$1] == .bytes ? change.new?.bytes($1).count ?? 0 : 0) }
    }
    page.begin(rowCount: count, columnCount: kinds.count, bytesCount: section.count + added)
    if isPresent.count < count { isPresent = Array(repeating: true, count: count) }
    let range = putKeys(keys, first)
    guard takeNumbers(&reader) else { return nil }
    putNumbers(presentCount: newCount) { $0.version }
    for slot in kinds.indices {
      let start = reader.offset
      guard let isUntouched = isUntouched(slot, &reader) else { return nil }
      if isUntouched { page.put(UnsafeRawBufferPointer(rebasing: section[start..<reader.offset])) }
    }
    return reader.remaining == 0 ? Patched(bytes: page.bytes, count: newCount, keys: range) : nil
  }

  // MARK: Keys

  /// - Returns: whether all changes are of rows of the section.
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
    let numbers = page.numbers
    for index in 0..<count { numbers[index] = key(keys, index, first) }
    removeGone(numbers)
    page.put(4 as UInt8)
    for index in 0..<newCount { page.put(UInt32(truncatingIfNeeded: numbers[index] &- numbers[0])) }
    return numbers[0]...numbers[newCount - 1]
  }

  // MARK: Columns

  /// Goes over a column, and puts it when something in it has changed.
  ///
  /// - Returns: whether it is as it was, so that it can be copied; nil when the rows have to be encoded.
  private func isUntouched(_ slot: Int, _ reader: inout ByteReader) -> Bool? {
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

  /// Makes ``isPresent`` say, unless all have one, which of the new rows have a value, and puts that.
  ///
  /// - Returns: how many have one. When none has, the column has nothing else.
  private func putPresence(_ slot: Int) -> Int {
    if isFull && changes.allSatisfy({ $0.new?.isPresent(slot) != false }) {
      page.put(1 as UInt8)
      return newCount
    }
    if isFull { for place in 0..<count { isPresent[place] = true } }
    for (place, change) in zip(places, changes) { if let new = change.new { isPresent[place] = new.isPresent(slot) } }
    let present = isPresent.withUnsafeMutableBufferPointer { isPresent in
      if let base = isPresent.baseAddress { removeGone(base) }
      return isPresent[..<newCount].reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    page.put(present == 0 ? 0 : present == newCount ? 1 : 2 as UInt8)
    if present > 0 && present < newCount { page.putBits(newCount) { isPresent[$0] } }
    return present
  }

  // MARK: Numbers

  /// Takes a column of numbers apart into those of the page, one for each row that the section had.
  private func takeNumbers(_ reader: inout ByteReader) -> Bool {
    guard let width = reader.number(UInt8.self), let low = reader.number(Int64.self), let bytes = reader.take(count * Int(width)) else {
      return false
    }
    switch width {
    case 0: page.numbers.update(repeating: low, count: count)
    case 1: take(bytes, low, as: UInt8.self)
    case 2: take(bytes, low, as: UInt16.self)
    case 4: take(bytes, low, as: UInt32.self)
    case 8: take(bytes, low, as: UInt64.self)
    default: return false
    }
    return true
  }

  @inline(__always) private func take<Number: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, _ low: Int64, as: Number.Type) {
    let (numbers, size) = (page.numbers, MemoryLayout<Number>.size)
    for index in 0..<count {
      let number = Number(littleEndian: bytes.loadUnaligned(fromByteOffset: index &* size, as: Number.self))
      numbers[index] = low &+ Int64(truncatingIfNeeded: number)
    }
  }

  /// Puts the numbers that were taken apart, with those of changed rows in their place.
  ///
  /// - Parameter presentCount: how many of the new rows have one, by ``isPresent``: one at least.
  @inline(__always) private func putNumbers(presentCount: Int, _ value: (RowPointer) -> Int64) {
    let numbers = page.numbers
    for (place, change) in zip(places, changes) { if let new = change.new { numbers[place] = value(new) } }
    removeGone(numbers)
    var (low, high) = (Int64.max, Int64.min)
    if presentCount == newCount {
      for index in 0..<newCount { (low, high) = (min(low, numbers[index]), max(high, numbers[index])) }
    } else {
      for index in 0..<newCount where isPresent[index] { (low, high) = (min(low, numbers[index]), max(high, numbers[index])) }
      let least = PageBuffer.form(low...high).least
      for index in 0..<newCount where !isPresent[index] { numbers[index] = least }
    }
    page.putNumbers(newCount, low...high)
  }

  /// Closes the gaps that the rows leave which are gone.
  @inline(__always) private func removeGone<Element>(_ elements: UnsafeMutablePointer<Element>) {
    guard var end = gone.first else { return }
    for (index, place) in gone.enumerated() {
      let next = index + 1 < gone.count ? gone[index + 1] : count
      (elements + end).update(from: elements + place + 1, count: next - place - 1)
      end += next - place - 1
    }
  }

  // MARK: Floating-point numbers

  private func isUntouchedReal(_ slot: Int, _ reader: inout ByteReader, _ hasChanged: Bool) -> Bool? {
    guard let form = reader.number(UInt8.self).flatMap({ RealForm(rawValue: $0) }) else { return nil }
    switch form {
    case .whole:
      guard takeNumbers(&reader), changes.allSatisfy({ $0.new.map { RealForm.isWhole($0.real(slot)) } ?? true }) else { return nil }
      if !hasChanged { return true }
      let present = putPresence(slot)
      if present == 0 { return false }
      page.put(form.rawValue)
      putNumbers(presentCount: present) { Int64($0.real(slot)) }
    case .single, .double:
      let size = form == .single ? 4 : 8
      guard let numbers = reader.take(size * count) else { return nil }
      if !hasChanged { return true }
      if putPresence(slot) == 0 { return false }
      page.put(form.rawValue)
      let start = page.byteCount
      put(numbers, size) { form == .single ? page.put(Float($0.real(slot)).bitPattern) : page.put($0.real(slot).bitPattern) }
      // Where all are whole numbers now, they lie as such.
      if form == .double && areWhole(UnsafeRawBufferPointer(rebasing: page.bytes[start...])) { return nil }
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

  /// Puts elements of a size, with those of changed rows in their place.
  @inline(__always) private func put(_ elements: UnsafeRawBufferPointer, _ size: Int, _ putNew: (RowPointer) -> Void) {
    var next = 0
    for (place, change) in zip(places, changes) {
      page.put(UnsafeRawBufferPointer(rebasing: elements[(next * size)..<(place * size)]))
      if let new = change.new { putNew(new) }
      next = place + 1
    }
    page.put(UnsafeRawBufferPointer(rebasing: elements[(next * size)...]))
  }

  // MARK: Text and bytes

  private func isUntouchedBytes(_ slot: Int, _ reader: inout ByteReader, _ hasChanged: Bool) -> Bool? {
    guard reader.number(UInt8.self) == 0, !changes.contains(where: { $0.new?.isExternal(slot) == true }), takeNumbers(&reader),
      let values = reader.take(findCuts())
    else { return nil }
    if !hasChanged { return true }
    let present = putPresence(slot)
    if present == 0 { return false }
    page.put(0 as UInt8)
    putNumbers(presentCount: present) { $0.isPresent(slot) ? Int64($0.bytes(slot).count) : 0 }
    var next = 0
    for (cut, change) in zip(cuts, changes) {
      page.put(UnsafeRawBufferPointer(rebasing: values[next..<cut.start]))
      if let new = change.new, new.isPresent(slot) { page.put(new.bytes(slot)) }
      next = cut.end
    }
    page.put(UnsafeRawBufferPointer(rebasing: values[next...]))
    return false
  }

  /// Finds where the values of the changed rows lie, by the lengths that were taken apart.
  ///
  /// - Returns: how many bytes all values have; -1 when a length is none.
  private func findCuts() -> Int {
    cuts.removeAll(keepingCapacity: true)
    let numbers = page.numbers
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
