/// The positions of objects in a binary property list, from its checked trailer.
struct BinaryPropertyListLayout {
  /// The first bytes of the format. A version digit and one more byte follow.
  static let mark: [UInt8] = [0x62, 0x70, 0x6C, 0x69, 0x73, 0x74, 0x30]
  private static let headSize = 8
  private static let trailerSize = 32

  let bytes: [UInt8]
  let offsetSize: Int
  let referenceSize: Int
  /// The number of objects.
  let count: Int
  /// The offset of the offset table, which follows all objects.
  let table: Int
  /// The index of the root object.
  let top: Int

  init(_ bytes: [UInt8]) throws(PropertyListError) {
    guard bytes.count >= Self.headSize + Self.trailerSize, bytes.starts(with: Self.mark) else {
      throw PropertyListError(.notAPropertyList, "The data isn't a binary property list.")
    }
    self.bytes = bytes
    let trailer = bytes.count - Self.trailerSize
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard let count = Int(exactly: Self.number(bytes, trailer + 8, 8)), let top = Int(exactly: Self.number(bytes, trailer + 16, 8)),
      let table = Int(exactly: Self.number(bytes, trailer + 24, 8)), (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      top < count, table >= Self.headSize, table <= trailer, count <= (trailer - table) / offsetSize
    else { throw PropertyListError(.damaged, at: .byte(trailer), "The trailer of the property list is inconsistent.") }
    self.count = count
    self.top = top
    self.table = table
  }

  /// Reads a big-endian number. Requires that its bytes exist.
  private static func number(_ bytes: [UInt8], _ start: Int, _ size: Int) -> UInt64 {
    var number: UInt64 = 0
    for place in start..<start + size { number = number << 8 | UInt64(bytes[place]) }
    return number
  }

  func damaged(_ place: Int) -> PropertyListError {
    PropertyListError(.damaged, at: .byte(place), "An object of the property list is damaged.")
  }

  /// The range of an object's bytes, checked to be between the header and the table.
  func range(_ start: Int, _ size: Int) throws(PropertyListError) -> Range<Int> {
    guard size >= 0, start >= Self.headSize, start <= table, size <= table - start else { throw damaged(start) }
    return start..<start + size
  }

  /// Reads a number in an object.
  func number(_ start: Int, _ size: Int) throws(PropertyListError) -> UInt64 {
    Self.number(bytes, try range(start, size).lowerBound, size)
  }

  /// The first byte of an object, which specifies its type.
  func marker(_ start: Int) throws(PropertyListError) -> UInt8 { bytes[try range(start, 1).lowerBound] }

  /// The offset of an object.
  func start(ofObject index: Int) throws(PropertyListError) -> Int {
    guard index < count, let start = Int(exactly: Self.number(bytes, table + index * offsetSize, offsetSize)) else {
      throw PropertyListError(.damaged, "The object \(index) doesn't exist in the property list.")
    }
    return start
  }

  /// The index of the object that a list references at an offset.
  func reference(_ place: Int) throws(PropertyListError) -> Int {
    guard let index = Int(exactly: try number(place, referenceSize)), index < count else { throw damaged(place) }
    return index
  }
}

extension PropertyList {
  /// Whether bytes are a binary dictionary with ASCII keys that begin with given prefixes.
  ///
  /// The check creates no values. It returns false for damaged bytes, and for dictionaries with more than 14 keys.
  public static func isDictionary(_ bytes: [UInt8], ofKeysBeginningWith prefixes: [StaticString]) -> Bool {
    guard let layout = try? BinaryPropertyListLayout(bytes) else { return false }
    return (try? layout.keysBegin(with: prefixes)) ?? false
  }
}

extension BinaryPropertyListLayout {
  fileprivate func keysBegin(with prefixes: [StaticString]) throws(PropertyListError) -> Bool {
    let dictionary = try start(ofObject: top)
    let kind = try marker(dictionary)
    guard kind >> 4 == 13, kind & 15 < 15 else { return false }
    for place in 0..<Int(kind & 15) {
      let key = try start(ofObject: try reference(dictionary + 1 + place * referenceSize))
      let keyMarker = try marker(key)
      guard keyMarker >> 4 == 5 else { return false }
      // Only the beginning of a key matters. The length of a long key, which is stored before its text, isn't read.
      let text = keyMarker & 15 == 15 ? key + 3 : key + 1
      if keyMarker & 15 == 15, try marker(key + 1) != 0x10 { return false }
      if !begins(at: text, with: prefixes) { return false }
    }
    return true
  }

  private func begins(at start: Int, with prefixes: [StaticString]) -> Bool {
    for prefix in prefixes {
      guard start + prefix.utf8CodeUnitCount <= table else { continue }
      var isSame = true
      for place in 0..<prefix.utf8CodeUnitCount where bytes[start + place] != prefix.utf8Start[place] { isSame = false }
      if isSame { return true }
    }
    return false
  }
}
