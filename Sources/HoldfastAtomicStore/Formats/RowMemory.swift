package import HoldfastStore

/// Limits the memory that the rows of one file use, because a small file from an untrusted source can have huge rows.
package struct RowMemory {
  private let limit: Int
  private var taken = 0

  /// - Parameter fileByteCount: the size of the file.
  package init(_ options: WholeFileOptions, fileByteCount: Int64) {
    let multiple = fileByteCount.multipliedReportingOverflow(by: 128)
    limit = options.largestRows ?? (multiple.overflow ? .max : Int(clamping: (64 << 20) + min(multiple.partialValue, .max / 2)))
  }

  /// Counts rows of an entity.
  ///
  /// - Returns: why they are too many; nil when they are not.
  package mutating func add(_ rowCount: Int, _ layout: RowLayout) -> String? {
    let product = rowCount.multipliedReportingOverflow(by: layout.fixedByteCount)
    let sum = taken.addingReportingOverflow(product.partialValue)
    taken = product.overflow || sum.overflow ? .max : sum.partialValue
    if taken <= limit { return nil }
    return "The rows take \(taken) bytes of memory or more, and \(limit) are allowed. If that is meant, allow more with largestRows."
  }

  /// Counts all rows of tables.
  mutating func add(_ generation: TableGeneration) -> String? {
    for entity in generation.schema.model.entities {
      if let excess = add(generation.rowCount(of: entity.index), entity.layout) { return excess }
    }
    return nil
  }
}
