/// The flaw of a ``BrokenStore``.
enum Flaw: String, CaseIterable, Sendable {
  case dropsUpdates, dropsDeletions, dropsRemovedLinks, losesInverse, losesInverseAfterDeletion, seversDespiteNoAction
  case servesStaleRows, servesOldVersions, leavesOutRow, deliversRowTwice, deliversOtherEntity, deliversMissingKeys
  case ignoresSorts, sortsWithoutTies, ignoresLimit, windowsOffByOne, countsOneMore
  case losesNilInInequality, ignoresCase, comparesPrefixes, forgetsDelimiters
  case ignoresEnough, swallowsSinkErrors, endsCancelledFetches, endsCancelledViews, keysWithColumns
  case skipsCancelledFetches, endsCancelledRelationships
  case givesKeysTwice, givesKeysOfDeletedRows, keysDescend
  case ignoresLocksOfMissingRows, overwritesEarlierVersions, appliesFirstPartOnly, comparesNaNAsEqual, ignoresSpacesAtEnd
  case ignoresExpectedVersions, ignoresLocks, throwsFirstConflictOnly, conflictsWithoutRows, ignoresUniqueness, throwsFirstConstraintOnly
  case commitsInPrepare, abortCommits, committedLater
  case liveSnapshots, liveRowsInSnapshots, sharesSnapshots, endedViewsAnswer, lateViews
  case newIdentity, losesRowsOnClosing, answersWhenClosed, mergesMetadata, losesMetadata, changesCapabilities, takesOtherModels
  case answersInOwnOrder, answersForMissingSources, offsetsDescend, namesUnknownEntities, leavesOutEntities
  case readsEverythingOnOpening, makesRoomInCommit, savesByHalves, commitsEverySecondTime
  case rowsAlongTwice, rowsAlongOfOthers, rowsAlongUnasked, rowsAlongOfNewestState
  case forgetsSubentities, deliversWholeFamilies, forgetsOrder, losesOrderKeys
  case dropsDerivedRows, setsWhatIsAdded, writesWhatIsNotMarked
  case servesOtherBytes, inventsMissingBytes, forgetsAnswers, explainsWithValues
  case servesFirstDemandOnly, refusesNestedRequests, answersLater, windowsInAnyOrder, cancelsRows, answersUnopened, receiptOfOtherRows
  case keepsToken
  case keysIgnorePredicate, keysIgnoreSorts, keysIgnoreOffset, aggregatesIgnorePredicate, windowsBeforePredicate,
    ignoresWindowsWithPredicate
  case normalisesText, convertsLineEndings, nanAsNil, roundsDates, truncatesDecimals
  case sortsNaNFirst, comparesDecimalsWith34Digits, comparesMilliseconds, convertsLineEndingsOfConstants, distinguishesNegativeZero
  case sumsNaNAsNil
  case limitsSources, changesFirstWordOnly, namesConstraintsInOtherOrder
  case tornCommits, tornRows, failsAfterFailure, leavesPartOfRefusedSave, losesSavesOfOtherStores
  case keepsLineage, comparesFileSizes
  case servesDamagedFiles, ignoresDamagedModel, ignoresDamagedNextKeys
  case hidesFailedCommits, failsCommitsThatTookEffect, failsAfterFailedCall
  case forgetsReservedKeys, reservesKeysPerStore, continuesAfterHighestRow, createsWhenReadOnly, requestedRowsTwice
  case countsInNewestState, ordersInNewestState, keysWithoutVersions, rowsAlongOfSuperentity, derivesFirstWordOnly
  case keepsTokenWithoutUpdates, lookupKeysOfAll
  case losesMetadataBySaving, losesMetadataTypes, takesMetadataWhenClosed, ignoresUniqueReferences
  case writesUnchangedExternalValues, keepsFilesOfReplacedValues, ignoresDigest, doesNotSynchronize, keepsDestinationsOfDeletedSources

  /// The rules that have at least one case that must fail.
  var rules: Set<String> {
    switch self {
    case .dropsUpdates, .dropsDeletions: ["S10"]
    case .dropsRemovedLinks, .losesInverse: ["L2", "L1"]
    case .losesInverseAfterDeletion, .seversDespiteNoAction: ["S11"]
    case .servesStaleRows, .lateViews: ["V2"]
    case .servesOldVersions, .deliversOtherEntity: ["F5"]
    case .leavesOutRow, .deliversRowTwice: ["F1"]
    case .deliversMissingKeys: ["R2"]
    case .ignoresSorts, .sortsWithoutTies: ["F2"]
    case .ignoresLimit, .windowsOffByOne: ["F3"]
    case .countsOneMore, .keysWithColumns: ["F6"]
    case .losesNilInInequality, .ignoresCase, .comparesPrefixes, .forgetsDelimiters: ["F1"]
    case .ignoresEnough, .swallowsSinkErrors: ["F4"]
    case .keepsToken, .keepsLineage: ["V4"]
    case .keysIgnorePredicate, .aggregatesIgnorePredicate: ["F6"]
    case .keysIgnoreSorts: ["F2"]
    case .keysIgnoreOffset, .windowsBeforePredicate, .ignoresWindowsWithPredicate: ["F3"]
    case .normalisesText, .convertsLineEndings, .nanAsNil, .roundsDates, .truncatesDecimals: ["F5"]
    case .sortsNaNFirst: ["F2"]
    case .comparesDecimalsWith34Digits, .comparesMilliseconds, .convertsLineEndingsOfConstants, .distinguishesNegativeZero: ["F1"]
    case .sumsNaNAsNil: ["F6"]
    case .limitsSources: ["L1"]
    case .changesFirstWordOnly: ["S10"]
    case .namesConstraintsInOtherOrder: ["S2"]
    case .endsCancelledFetches, .skipsCancelledFetches, .endsCancelledRelationships: ["Q1"]
    case .endsCancelledViews: ["Q3"]
    case .givesKeysTwice, .givesKeysOfDeletedRows, .keysDescend: ["K1"]
    case .ignoresExpectedVersions, .ignoresLocks, .throwsFirstConflictOnly, .conflictsWithoutRows: ["S1"]
    case .ignoresLocksOfMissingRows, .overwritesEarlierVersions: ["S1"]
    case .appliesFirstPartOnly: ["S10", "S13"]
    case .comparesNaNAsEqual, .ignoresSpacesAtEnd: ["S2"]
    case .ignoresUniqueness, .throwsFirstConstraintOnly: ["S2"]
    case .commitsInPrepare: ["S4"]
    case .abortCommits: ["S9"]
    case .committedLater: ["S8"]
    case .liveSnapshots, .liveRowsInSnapshots, .sharesSnapshots: ["V1"]
    case .endedViewsAnswer: ["V3"]
    case .newIdentity: ["O1"]
    case .losesRowsOnClosing, .answersWhenClosed: ["O5"]
    case .mergesMetadata, .losesMetadata: ["M1"]
    case .changesCapabilities: ["C1"]
    case .takesOtherModels: ["O3"]
    case .answersInOwnOrder, .offsetsDescend, .namesUnknownEntities, .leavesOutEntities: ["L1"]
    case .answersForMissingSources, .keepsDestinationsOfDeletedSources: ["L3"]
    case .readsEverythingOnOpening: ["O4"]
    case .makesRoomInCommit: ["S3"]
    case .savesByHalves: ["S6"]
    case .commitsEverySecondTime: ["S7"]
    case .rowsAlongTwice, .rowsAlongOfOthers, .rowsAlongUnasked, .rowsAlongOfNewestState: ["L4"]
    case .forgetsSubentities: ["F1"]
    case .deliversWholeFamilies: ["R2"]
    case .forgetsOrder: ["S12"]
    case .losesOrderKeys: ["L5"]
    case .dropsDerivedRows, .setsWhatIsAdded: ["S13"]
    case .writesWhatIsNotMarked: ["S14"]
    case .servesOtherBytes: ["X1"]
    case .inventsMissingBytes, .servesDamagedFiles: ["X2"]
    case .forgetsAnswers: ["X1"]
    case .servesFirstDemandOnly: ["K1"]
    case .refusesNestedRequests: ["F7"]
    case .answersLater: ["C2"]
    case .cancelsRows: ["Q2"]
    case .answersUnopened: ["C3"]
    case .explainsWithValues: ["E1"]
    case .receiptOfOtherRows: ["S15"]
    case .windowsInAnyOrder: ["F3"]
    case .tornCommits: ["S8"]
    case .tornRows: ["F8"]
    case .hidesFailedCommits, .failsCommitsThatTookEffect: ["S6"]
    case .failsAfterFailedCall: ["S5"]
    case .failsAfterFailure, .leavesPartOfRefusedSave: ["S5"]
    case .losesSavesOfOtherStores, .comparesFileSizes: ["O6"]
    case .forgetsReservedKeys, .reservesKeysPerStore, .continuesAfterHighestRow: ["K1"]
    case .createsWhenReadOnly: ["O2"]
    case .requestedRowsTwice: ["R1"]
    case .countsInNewestState, .ordersInNewestState: ["V1"]
    case .keysWithoutVersions, .lookupKeysOfAll: ["F6"]
    case .keepsTokenWithoutUpdates: ["V4"]
    case .rowsAlongOfSuperentity: ["L4"]
    case .derivesFirstWordOnly: ["S13"]
    case .losesMetadataBySaving, .losesMetadataTypes: ["M1"]
    case .takesMetadataWhenClosed: ["O5"]
    case .ignoresUniqueReferences: ["S2"]
    case .writesUnchangedExternalValues: ["X3"]
    case .keepsFilesOfReplacedValues: ["X4"]
    case .ignoresDigest, .ignoresDamagedModel, .ignoresDamagedNextKeys: ["O7"]
    case .doesNotSynchronize: ["S7"]
    }
  }

  /// The correct stores that can have a flaw.
  enum Base: CaseIterable { case memory, evaluating, sqlite, json, document, server }

  /// The store that has the flaw. Some flaws only show in a store that answers queries itself, or has files.
  var base: Base {
    switch self {
    case .ignoresSorts, .sortsWithoutTies, .ignoresLimit, .windowsOffByOne, .losesNilInInequality, .ignoresCase, .comparesPrefixes,
      .forgetsDelimiters, .readsEverythingOnOpening, .makesRoomInCommit, .savesByHalves, .commitsEverySecondTime, .servesOtherBytes,
      .inventsMissingBytes, .servesDamagedFiles, .forgetsAnswers, .answersLater, .windowsInAnyOrder, .answersUnopened,
      .keysIgnorePredicate, .keysIgnoreSorts, .keysIgnoreOffset, .aggregatesIgnorePredicate, .windowsBeforePredicate,
      .ignoresWindowsWithPredicate, .changesFirstWordOnly, .failsAfterFailure, .writesUnchangedExternalValues,
      .keepsFilesOfReplacedValues, .comparesMilliseconds, .convertsLineEndingsOfConstants,
      .distinguishesNegativeZero, .sumsNaNAsNil, .explainsWithValues:
      .sqlite
    case .ignoresDigest, .ignoresDamagedModel, .ignoresDamagedNextKeys, .comparesFileSizes, .doesNotSynchronize, .hidesFailedCommits,
      .failsCommitsThatTookEffect, .failsAfterFailedCall:
      .json
    // SQLite refuses NaN, and doesn't compare decimals.
    case .sortsNaNFirst, .comparesDecimalsWith34Digits: .evaluating
    case .keepsLineage: .document
    case .losesSavesOfOtherStores, .reservesKeysPerStore: .server
    default: .memory
    }
  }
}
