public import HoldfastFiles

/// Options of a whole-file store.
public struct WholeFileOptions: Sendable {
  /// Durability, locking, size limit, permissions, file system, and whether the store is read-only.
  ///
  /// See ``/HoldfastFiles/DurableFileOptions``.
  public var file: DurableFileOptions
  /// Whether a file with a wrong or missing digest can be opened. Defaults to false.
  ///
  /// Such a file was damaged or edited by hand. All checks that don't need the digest still apply. The next save adds a valid
  /// digest. With this option, opening reads the entire file, whatever its format.
  public var allowsUnverified: Bool

  /// Which attribute values are stored in separate files.
  ///
  /// The values of a file NAME are stored next to it, in `.NAME_SUPPORT/_EXTERNAL_DATA/UUID`. Only attributes that allow external
  /// storage are affected.
  public var externalData: ExternalDataOptions

  /// The maximum memory for rows in bytes, without text and binary data.
  ///
  /// Defaults to nil, which means 64 MiB plus 128 times the size of the file.
  ///
  /// A row takes eight bytes for each attribute and to-one relationship. Missing values also take memory, but no space in the file,
  /// so a small file can contain huge rows. Opening a file beyond the limit throws ``/HoldfastStore/StoreError/Code/tooLarge``
  /// before the rows are in memory. Saving one throws ``/HoldfastStore/StoreError/Code/unstorableValue``.
  public var maximumRowByteCount: Int?

  /// Creates options.
  public init(
    file: DurableFileOptions = DurableFileOptions(), allowsUnverified: Bool = false,
    externalData: ExternalDataOptions = ExternalDataOptions(), maximumRowByteCount: Int? = nil
  ) {
    self.file = file
    self.allowsUnverified = allowsUnverified
    self.externalData = externalData
    self.maximumRowByteCount = maximumRowByteCount
  }
}
