/// The scalars that fold to something else, and what they fold to: the generated tables unpacked.
struct FoldingMappings {
  /// One mapping: a scalar, and where its result lies in the pool.
  struct Entry {
    var scalar: UInt32
    /// The offset of the first byte, shifted left by four, plus the number of bytes (at most 15). Never 0.
    var place: UInt32
  }

  /// The mappings in no special order. A scalar that occurs twice has the same result twice.
  private(set) var entries: [Entry] = []
  /// The UTF-8 of all results. Begins with one byte that nothing uses, so that no place is 0.
  private(set) var pool: [UInt8] = [0]

  /// The UTF-8 that the scalar of an entry folds to.
  func result(of entry: Entry) -> ArraySlice<UInt8> {
    let start = Int(entry.place >> 4)
    return pool[start..<start + Int(entry.place & 15)]
  }

  /// Adds the mapping of a scalar to the bytes that were appended to the pool since `start`.
  private mutating func add(_ scalar: UInt32, resultFrom start: Int) {
    entries.append(Entry(scalar: scalar, place: UInt32(start << 4 | (pool.count - start))))
  }
}

extension FoldingMappings {
  /// The generated list of case foldings.
  static var caseInsensitive: FoldingMappings {
    var mappings = FoldingMappings()
    mappings.add(packed: FoldingTables.caseFoldings)
    return mappings
  }

  /// The generated lists of decompositions and of removed marks.
  static var diacriticInsensitive: FoldingMappings {
    var mappings = FoldingMappings()
    mappings.add(packed: FoldingTables.diacriticFoldings)
    let bounds = FoldingTables.removedMarks
    for index in stride(from: 0, to: bounds.count, by: 2) {
      for scalar in bounds[index]...bounds[index + 1] { mappings.add(scalar, resultFrom: mappings.pool.count) }
    }
    return mappings
  }

  /// What every scalar that folds under one of the two foldings becomes under both.
  static var caseAndDiacriticInsensitive: FoldingMappings {
    let scalars = (caseInsensitive.entries + diacriticInsensitive.entries).map(\.scalar)
    // One line for each scalar, folded together: a line break folds to itself, and nothing else folds to one.
    var lines: [UInt8] = []
    for scalar in scalars {
      appendUTF8(of: scalar, to: &lines)
      lines.append(UInt8(ascii: "\n"))
    }
    var mappings = FoldingMappings()
    for (scalar, result) in zip(scalars, foldedUntilStable(lines).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)) {
      let start = mappings.pool.count
      mappings.pool.append(contentsOf: result)
      mappings.add(scalar, resultFrom: start)
    }
    return mappings
  }

  private mutating func add(packed list: [UInt32]) {
    var position = 0
    while position < list.count {
      let start = pool.count
      let end = position + 1 + Int(list[position] >> 24)
      for index in position + 1..<end { appendUTF8(of: list[index], to: &pool) }
      add(list[position] & 0xFF_FFFF, resultFrom: start)
      position = end
    }
  }
}

/// Case folded first, then diacritics, and again until nothing changes.
private func foldedUntilStable(_ text: [UInt8]) -> [UInt8] {
  let folded = TextFolding.diacriticInsensitive.folded(TextFolding.caseInsensitive.folded(text))
  return folded == text ? text : foldedUntilStable(folded)
}

extension TextFolding {
  fileprivate func folded(_ text: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    text.withUnsafeBytes { fold($0, into: &output) }
    return output
  }
}

/// Appends the UTF-8 of a scalar of the generated tables, which hold valid scalars only.
private func appendUTF8(of scalar: UInt32, to bytes: inout [UInt8]) {
  guard let scalar = Unicode.Scalar(scalar) else { return }
  bytes.append(contentsOf: scalar.utf8)
}
