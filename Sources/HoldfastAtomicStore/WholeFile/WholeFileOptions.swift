public import HoldfastFiles
public import HoldfastStore

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
  ///
  /// If the file of an open store is edited, the edit is treated like a save of another process: an object that both change is a conflict.
  /// Close the store before editing its file twice: without a save in between, the second edit isn't known to contain the first one, and
  /// the next save throws ``/HoldfastStore/StoreError/Code/storeReplaced``.
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

  /// Whether saves write a history into the file. Defaults to ``/HoldfastStore/HistoryTracking/ifPresent``.
  ///
  /// With ``/HoldfastStore/HistoryTracking/always``, the first save adds it to an existing file. Opening throws
  /// ``/HoldfastStore/StoreError/Code/unsupportedRequest`` if the format keeps no history. A save of more than 4,194,304 objects can't be kept
  /// and is refused.
  public var historyTracking: HistoryTracking = .ifPresent

  /// The maximum size of the history in bytes. Defaults to 1 MiB; nil for no maximum.
  ///
  /// It has an effect with ``/HoldfastStore/HistoryTracking/always``. Saves record it in the history, and with
  /// ``/HoldfastStore/HistoryTracking/ifPresent``, saves keep the maximum that is recorded there.
  ///
  /// Each save writes the whole history again. One that exceeds the limit deletes the oldest transactions. Tokens of these are then invalid.
  /// The last transaction is always kept. A transaction takes about 80 bytes, 60 to 100 bytes for each entity, kind of change and set of updated
  /// properties, and 2 to 20 bytes for each run of objects with consecutive keys; in an XML file a third more.
  public var maximumHistoryByteCount: Int? = WholeFileOptions.defaultMaximumHistoryByteCount

  static let defaultMaximumHistoryByteCount = 1 << 20

  /// Whether saves of other processes are reported as they happen. Defaults to false.
  ///
  /// If true, the store loads each version that another process saves. The coordinator removes changed rows from its cache, and
  /// `savedChanges()` and contexts that merge automatically receive the changes. On Linux, a report takes a few milliseconds more than loading
  /// the file. Elsewhere, and beyond the system's limit of watched folders, it takes up to a second more. More than 10,000 changes, and those of
  /// a binary file whose rows weren't all read yet, are reported without IDs. A version that can't be loaded isn't reported: the next save throws
  /// its error.
  public var reportsOtherProcesses = false

  /// Whether a save only changes the tables, unless a quarter of the objects changed since the file was written, or external files change.
  /// Closing the store writes the file; without it, changes since the last writing are lost. Rows that are too many for the memory are in a
  /// temporary file. Defaults to false.
  ///
  /// For a copy that a migration reads or changes batch by batch. No other process may save the file.
  package var defersWrites = false

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

/// The options of a type of whole-file stores, which contain those of every such store.
public protocol WholeFileStoreOptions: Sendable {
  /// The options shared by all whole-file stores.
  var wholeFile: WholeFileOptions { get set }
}

extension WholeFileOptions: WholeFileStoreOptions {
  /// The options themselves.
  public var wholeFile: WholeFileOptions {
    get { self }
    set { self = newValue }
  }
}
